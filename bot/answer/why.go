package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// why answers from stored evidence. For kernels without an explanation it starts a run that only profiles both sides. Such a run
// takes a GPU's time, so it needs the role of /rebench: on a public repository, everybody may read.
func (d Decider) why(ctx context.Context, s *change.State, roles policy.Commands, has policy.Role, w grammar.Why) (change.Answered, error) {
	switch {
	case s.Plan != nil && len(s.Plan.Problems) > 0:
		return refusedAs(change.AnswerPlanMistakes)
	case len(s.Runs) == 0:
		return refusedAs(change.AnswerNoKernel)
	}
	kernels, shapes := sorted(s, w)
	runs, problem := meant(s, kernels, "")
	switch {
	case problem != nil:
		return refused(*problem)
	case len(runs) == 0:
		return refusedAs(change.AnswerKernelGone)
	}
	if d.Profile != nil {
		return d.profile(ctx, s, runs, shapes, roles, has)
	}
	var effect change.Effect
	a := change.Answer{Kind: change.AnswerReasons}
	var lacking []string
	for _, run := range runs {
		known, differs, err := d.reasons(ctx, s, run, shapes)
		switch {
		case err != nil:
			return change.Answered{}, err
		case len(known) > 0:
			a.Reasons = append(a.Reasons, change.Reasons{Kernel: run.Name, Shapes: known})
			continue
		case run.Unfinished() || profiled(s, run):
			a.Busy = append(a.Busy, run.Name)
			continue
		case s.Held():
			return held(s)
		case !roles.Rebench.Allows(has):
			lacking = append(lacking, run.Name)
			continue
		}
		asked := shapes
		if len(asked) == 0 {
			asked = differs
		}
		bundle, explained, err := d.Planner.Explain(ctx, s.ID, s.Facts, planner.Rerun{Folder: run.Folder, Device: run.Device, Shapes: asked})
		if err != nil {
			return badRequest(err)
		}
		a.Kernels = append(a.Kernels, run.Name)
		effect.ExtraRuns = append(effect.ExtraRuns, change.ExtraRun{
			Folder: run.Folder, Device: run.Device, Bundle: bundle, Rebench: grammar.Rebench{Kernels: []string{run.Folder}, Shapes: explained}, OnlyExplain: true,
		})
	}
	if len(lacking) > 0 {
		a.Kind, a.Kernels, a.Needs, a.Has = change.AnswerWhyNeedsRun, lacking, roles.Rebench, has
		return change.Answered{OK: len(a.Reasons) > 0, Answer: a}, nil
	}
	return granted(effect, a)
}

// profile answers from profiles that it waits for. A kernel on a device that this machine is not is left out if another one is answered.
func (d Decider) profile(ctx context.Context, s *change.State, runs []change.Run, shapes []string, roles policy.Commands, has policy.Role) (change.Answered, error) {
	a := change.Answer{Kind: change.AnswerReasons}
	switch {
	case s.Held():
		return held(s)
	case !roles.Rebench.Allows(has):
		for _, run := range runs {
			a.Kernels = append(a.Kernels, run.Name)
		}
		a.Kind, a.Needs, a.Has = change.AnswerWhyNeedsRun, roles.Rebench, has
		return refused(a)
	}
	var problem error
	for _, run := range runs {
		v, err := d.Profile(ctx, run, shapes)
		if _, bad := errors.AsType[usage.Error](err); err != nil && !bad {
			return change.Answered{}, err
		}
		if err == nil && len(v.Why) == 0 {
			err = usage.Errorf("%s is not explained: %s", run.Name, v.Summary)
		}
		if err != nil {
			problem = cmp.Or(problem, err)
			continue
		}
		a.Reasons = append(a.Reasons, change.Reasons{Kernel: run.Name, Shapes: about(v.Why, nil)})
	}
	if len(a.Reasons) == 0 {
		return badRequest(problem)
	}
	return granted(change.Effect{}, a)
}

// sorted tells the kernels among the words of a command from the shapes.
func sorted(s *change.State, w grammar.Why) (kernels, shapes []string) {
	shapes = slices.Clone(w.Shapes)
	for _, word := range w.Words {
		if len(s.Meant(word)) > 0 {
			kernels = append(kernels, word)
		} else if !slices.Contains(shapes, word) {
			shapes = append(shapes, word)
		}
	}
	return kernels, shapes
}

// profiled reports whether a run that profiles a kernel is queued or running.
func profiled(s *change.State, run change.Run) bool {
	return slices.ContainsFunc(s.ExtraRuns, func(r change.Run) bool { return r.OnlyExplain && r.Same(run) && r.Unfinished() })
}

// reasons is the explanation of a kernel in the evidence about its head, if it has all of the shapes, and which shapes differ most. The
// newest evidence that has one counts.
func (d Decider) reasons(ctx context.Context, s *change.State, run change.Run, shapes []string) (found []gates.Why, differ []string, err error) {
	of := []change.Run{run}
	for _, extra := range s.ExtraRuns {
		if extra.OnlyExplain && extra.Same(run) {
			of = append(of, extra)
		}
	}
	for _, r := range of {
		if r.Phase != change.Done || r.Result == nil || r.Result.Verdict == "" {
			continue
		}
		v, err := d.Verdict(ctx, *r.Result)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the verdict on %s: %w", r.Name, err)
		}
		if !r.OnlyExplain {
			differ = gates.MostDiffering(v.Comparisons)
		}
		if all := about(v.Why, shapes); len(all) > 0 {
			found = all
		}
	}
	return found, differ, nil
}

// about is the explanations of the shapes, in the form of a reply; none if one of the shapes lacks its own. Without shapes it is all of them.
func about(all []gates.Why, shapes []string) []gates.Why {
	var list []gates.Why
	for _, w := range all {
		if len(shapes) == 0 || slices.Contains(shapes, w.Shape) {
			w.Stalls, w.Roofline = nil, nil // the report has them
			list = append(list, w)
		}
	}
	if len(list) < len(shapes) {
		return nil
	}
	return list
}
