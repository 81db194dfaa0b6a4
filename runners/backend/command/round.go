package command

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// roles maps the sides of a round to the harness that each runs.
var roles = map[rune]runners.Role{
	gates.SideBaseline: runners.Baseline, gates.SideCandidate: runners.Candidate, gates.SideControl: runners.Baseline,
}

// Round measures the shapes once: one mirrored block of fresh processes, each of which times all
// shapes on the round's inputs.
func (w *Worker) Round(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape, _ runners.Progress) (gates.Round, error) {
	round := gates.Round{Before: runners.Load(), Seed: w.rng.Uint64() >> 16}
	rng := rand.New(rand.NewPCG(round.Seed, 1))
	block := runners.Blocks(rng, 1)[0]
	series, launches := make([]gates.Series, len(shapes)), map[string]map[runners.Role][][]float64{}
	for i, s := range shapes {
		series[i] = gates.Series{Shape: s.Name, Order: block, Worst: &gates.Errors{}}
		launches[s.Name] = map[runners.Role][][]float64{}
	}
	// If the test command has decided, figures are allowed but not required.
	owed := needs{times: true, figures: w.job.Manifest.Command.Test == nil}
	for _, letter := range block {
		role := roles[letter]
		r := w.sides[role].request(performance)
		r.shapes, r.seed, r.samples = shapes, round.Seed, int(gate.Pairs)
		said, failure, err := w.ask(ctx, role, r, owed)
		if err != nil {
			return round, fmt.Errorf("timing the %s: %w", role, err)
		}
		if failure == nil {
			if lack := said.missing(shapes, owed); lack != "" {
				failure = &gates.Failure{Kind: gates.FailureOutput, Detail: "the bench command printed " + lack}
			}
		}
		switch {
		case failure != nil && role == runners.Baseline:
			return round, fmt.Errorf("the baseline's harness failed: %s; fix it on the base branch, or run its bench command by hand on this machine", failure.Detail)
		case failure != nil:
			round.Failure = failure
			round.After = runners.Load()
			return round, nil
		}
		for i := range series {
			said.add(&series[i], letter == gates.SideCandidate)
			launches[series[i].Shape][role] = append(launches[series[i].Shape][role], said.times[series[i].Shape])
		}
	}
	// The median of launches hides the step of the harness's clock.
	for i := range series {
		for _, processes := range launches[series[i].Shape] {
			series[i].ClockNanos = max(series[i].ClockNanos, gates.ClockStep(processes))
		}
	}
	round.Series = series
	round.After = runners.Load()
	return round, nil
}

// add appends a process's single sample to the series and, for the candidate, the errors of the
// outputs behind it. Batch is the smallest number of launches behind a sample.
func (r *report) add(s *gates.Series, candidate bool) {
	times := r.times[s.Shape]
	s.Nanos = append(s.Nanos, stats.Describe(times).P50)
	if n := len(times); s.Batch == 0 || n < s.Batch {
		s.Batch = n
	}
	if !candidate {
		return
	}
	for _, f := range r.figures {
		if f.shape == s.Shape {
			s.Verified++
			runners.Worse(s.Worst, &f.errors)
		}
	}
}
