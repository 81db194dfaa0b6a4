package planner

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// Explain packs one kernel of a change for profiles of both sides, without measuring anything. It names the bundle, and the shapes
// that are profiled. What cannot be profiled is a usage.Error.
func (p *Planner) Explain(ctx context.Context, id change.ID, f change.Facts, r Rerun) (digest string, shapes []string, err error) {
	digest, err = p.packAgain(ctx, id, f, func(ctx context.Context, s *survey) (string, error) {
		job, err := s.jobAgain(ctx, r)
		if err == nil {
			job, err = explained(job, r.Shapes)
		}
		if err != nil {
			return "", err
		}
		shapes = job.Shapes
		return s.planner.pack(ctx, job)
	})
	if err != nil {
		return "", nil, fmt.Errorf("planning profiles of %s at %.12s: %w", f.Repo, f.Head, err)
	}
	return digest, shapes, nil
}

// explained returns the job that only profiles both sides, on the shapes that somebody names, or else on those that the rule is most
// about.
func explained(job runners.Job, shapes []string) (runners.Job, error) {
	rule := job.Rule()
	gate := rule.Gates.Performance
	switch {
	case !runners.ModeOf(job.Manifest).Explains():
		return job, usage.Errorf("%s has mode %s: kernelgate cannot count what such a kernel does, because a program of the repository runs it", job.Manifest.Name, job.Manifest.Mode)
	case gate == nil:
		return job, usage.Errorf("rule %s has no performance gate, so no times of %s are compared", rule.Name, job.Manifest.Name)
	case gate.Explain == nil:
		return job, usage.Errorf("rule %s has explain: none, so nothing is profiled (ask for an explanation in gates.performance.explain)", rule.Name)
	case job.Baseline == nil:
		return job, usage.Errorf("%s is new: there is no baseline to compare with", job.Manifest.Name)
	case len(shapes) > gates.MaxExplainedShapes:
		return job, usage.Errorf("%d shapes are too many to profile at once (name at most %d)", len(shapes), gates.MaxExplainedShapes)
	}
	both := job.ShapeNames()
	if len(shapes) == 0 && gate.Explain.Shapes != nil {
		shapes = gate.Explain.Shapes.Pick(both)
	}
	if len(shapes) == 0 && gate.Target != nil {
		shapes = gate.Target.Shapes.Pick(both)
	}
	if len(shapes) == 0 {
		shapes = both
	}
	if len(shapes) == 0 {
		return job, usage.Errorf("%s has no shape that both sides take", job.Manifest.Name)
	}
	job.Shapes, job.Seeds = shapes[:min(len(shapes), gates.MaxExplainedShapes)], nil
	return job, job.Ask(runners.PartExplain)
}
