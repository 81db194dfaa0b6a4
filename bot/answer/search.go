package answer

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
)

// search starts a tuning or a bisection of one kernel. The result is a report, which changes no verdict.
func (d Decider) search(ctx context.Context, s *change.State, asked grammar.Command, word, device string) (change.Answered, error) {
	switch {
	case s.Plan != nil && len(s.Plan.Problems) > 0:
		return refusedAs(change.AnswerPlanMistakes)
	case s.Current() == nil:
		return refusedAs(change.AnswerUnread)
	case len(s.Runs) == 0:
		return refusedAs(change.AnswerNoKernel)
	case s.Held():
		return held(s)
	}
	var words []string
	if word != "" {
		words = []string{word}
	}
	runs, problem := meant(s, words, device)
	switch {
	case problem != nil:
		return refused(*problem)
	case len(runs) == 0:
		return refusedAs(change.AnswerKernelGone)
	case slices.ContainsFunc(runs, func(r change.Run) bool { return r.Folder != runs[0].Folder }):
		return refused(change.Answer{Kind: change.AnswerWhichKernel, Command: asked.Name(), Kernels: distinct(runs, kernelName)})
	}
	run := runs[0] // on the first device, if no device is named
	if slices.ContainsFunc(s.Searches, func(r change.Run) bool {
		return r.Unfinished() && r.Key() == run.Key() && r.Search.Name() == asked.Name()
	}) {
		return refused(change.Answer{Kind: change.AnswerSearchRuns, Command: asked.Name(), Kernels: names(runs[:1])})
	}
	r := planner.Search{Folder: run.Folder, Device: run.Device, Approved: s.ApprovedHeads()}
	kind := change.AnswerTuning
	switch asked := asked.(type) {
	case grammar.Tune:
		r.Tune = &asked
	case grammar.Bisect:
		r.Bisect, kind = &asked, change.AnswerBisecting
	}
	bundle, err := d.Planner.Search(ctx, s.ID, s.Facts, r)
	if err != nil {
		return badRequest(err)
	}
	return granted(change.Effect{Search: &change.Search{Folder: run.Folder, Device: run.Device, Bundle: bundle, Request: grammar.Request{Command: asked}}},
		change.Answer{Kind: kind, Kernels: names(runs[:1])})
}
