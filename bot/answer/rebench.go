package answer

import (
	"context"
	"errors"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// rebench starts further attempts. What was measured of the machine code stays: an
// attempt adds rounds, so that nobody can roll the dice until they please. A comparison that
// the policy does not ask for is an extra and decides nothing.
func (d Decider) rebench(ctx context.Context, s *change.State, policy *policy.Policy, r grammar.Rebench) (change.Answered, error) {
	extra := r.Versus != "" || len(r.Shapes) > 0 || len(r.Seeds) > 0
	switch {
	case s.Plan != nil && len(s.Plan.Problems) > 0:
		return refusedAs(change.AnswerPlanMistakes)
	case len(s.Runs) == 0 && d.Planner == nil && len(r.Kernels) == 0:
		return granted(change.Effect{}, change.Answer{Kind: change.AnswerNoKernel, Workflow: true})
	case len(s.Runs) == 0:
		return refusedAs(change.AnswerNoKernel)
	case s.Held():
		return held(s)
	case d.Planner == nil && (extra || r.Profile):
		return refusedAs(change.AnswerWorkflowAsks)
	}
	runs, problem := meant(s, r.Kernels, r.Device)
	switch {
	case problem != nil:
		return refused(*problem)
	case len(runs) == 0:
		return refusedAs(change.AnswerKernelGone)
	case r.Profile && !profiles(policy, runs):
		return refusedAs(change.AnswerNoProfile)
	case d.Planner == nil:
		return d.anew(s)
	case extra:
		return d.extraRuns(ctx, s, runs, r)
	}
	return d.again(ctx, s, runs, r)
}

// meant is the runs of the kernels that are named, by folder or by name, or of all, on one device or
// on each; those that are gone left out.
func meant(s *change.State, words []string, device string) (runs []change.Run, problem *change.Answer) {
	for _, word := range words {
		found := s.Meant(word)
		folders := distinct(found, func(r change.Run) string { return r.Folder })
		switch {
		case len(found) == 0:
			return nil, &change.Answer{Kind: change.AnswerUnknownKernel, Word: word, Kernels: distinct(s.Runs, kernelName)}
		case len(folders) > 1:
			return nil, &change.Answer{Kind: change.AnswerSeveralKernels, Word: word, Kernels: folders}
		case !slices.ContainsFunc(runs, found[0].Same): // named once more, in another way
			runs = append(runs, found...)
		}
	}
	if len(words) == 0 {
		runs = slices.Clone(s.Runs)
	}
	runs = slices.DeleteFunc(runs, func(r change.Run) bool { return r.Sources == "" })
	if device == "" || len(runs) == 0 {
		return runs, nil
	}
	there := slices.DeleteFunc(distinct(runs, func(r change.Run) string { return r.Device }), func(d string) bool { return d == "" })
	if !slices.Contains(there, device) {
		return nil, &change.Answer{Kind: change.AnswerUnknownDevice, Word: device, Devices: there}
	}
	return slices.DeleteFunc(runs, func(r change.Run) bool { return r.Device != device }), nil
}

func kernelName(r change.Run) string { return r.KernelName() }

// distinct is the words of runs, each once, in their order.
func distinct(runs []change.Run, of func(change.Run) string) (words []string) {
	for _, r := range runs {
		if word := of(r); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// profiles tells whether the policy asks for a profile of any of the runs.
func profiles(pol *policy.Policy, runs []change.Run) bool {
	return pol != nil && slices.ContainsFunc(pol.Rules, func(rule policy.Rule) bool {
		return rule.Gates.Profile != nil && slices.ContainsFunc(runs, func(run change.Run) bool { return run.Rule == rule.Name })
	})
}

// anew measures every kernel of the change: a workflow's job is about all of them.
func (d Decider) anew(s *change.State) (change.Answered, error) {
	for _, run := range s.Runs {
		if err := d.Spent(run); err != nil {
			return refused(change.Answer{Kind: change.AnswerSpent, Kernels: []string{run.Name}, Quote: err.Error()})
		}
	}
	return granted(change.Effect{}, change.Answer{Kind: change.AnswerRemeasuring, Kernels: names(s.Runs)})
}

func (d Decider) again(ctx context.Context, s *change.State, runs []change.Run, r grammar.Rebench) (change.Answered, error) {
	var effect change.Effect
	var busy, decided []change.Run
	for _, run := range runs {
		if run.Unfinished() {
			busy = append(busy, run)
			continue
		}
		// Before anything was timed no round has decided, and neither has an ERROR.
		if r := run.Result; r != nil && r.Attempt > 0 && r.Outcome != gates.Error && r.Reason != gates.ReasonInconclusive {
			decided = append(decided, run)
		}
		bundle, err := d.Planner.Rerun(ctx, s.ID, s.Facts, planner.Rerun{Folder: run.Folder, Device: run.Device, Rounds: r.Rounds, Profile: r.Profile})
		if err != nil {
			return badRequest(err)
		}
		effect.Rebench = append(effect.Rebench, change.Rerun{Folder: run.Folder, Device: run.Device, Bundle: bundle})
	}
	if len(effect.Rebench) == 0 {
		return refused(change.Answer{Kind: change.AnswerBusy, Busy: names(busy)})
	}
	return granted(effect, change.Answer{Kind: change.AnswerMoreRounds, Decided: names(decided), Busy: names(busy)})
}

func (d Decider) extraRuns(ctx context.Context, s *change.State, runs []change.Run, r grammar.Rebench) (change.Answered, error) {
	var effect change.Effect
	for _, run := range runs {
		bundle, err := d.Planner.Rerun(ctx, s.ID, s.Facts, planner.Rerun{
			Folder: run.Folder, Device: run.Device, Rounds: r.Rounds, Shapes: r.Shapes, Seeds: r.Seeds, Versus: r.Versus, Profile: r.Profile, Approved: s.ApprovedHeads(),
		})
		if err != nil {
			return badRequest(err)
		}
		one := r
		one.Kernels, one.Device = []string{run.Folder}, run.Device
		effect.ExtraRuns = append(effect.ExtraRuns, change.ExtraRun{Folder: run.Folder, Device: run.Device, Bundle: bundle, Rebench: one})
	}
	return granted(effect, change.Answer{Kind: change.AnswerExtraRun})
}

// badRequest tells the author of a command what does not exist.
func badRequest(err error) (change.Answered, error) {
	if bad, ok := errors.AsType[usage.Error](err); ok {
		return refused(change.Answer{Kind: change.AnswerCannotServe, Quote: bad.Error()})
	}
	return change.Answered{}, err
}
