package gather

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// Steps gathers the same evidence as [Gather], but the caller decides which step comes next. A
// search uses it: most of its candidates need only the first steps, and many candidates take turns
// in the rounds. Steps asks no [Record], and shows no machine code.
type Steps struct{ g *gatherer }

// NewSteps prepares the steps of a job.
func NewSteps(job runners.Job, b runners.Backend, progress runners.Progress) *Steps {
	job.Record = nil
	return &Steps{g: newGatherer(job, undisassembled{b}, progress)}
}

// undisassembled is a backend that shows no machine code: nobody reads that of a candidate.
type undisassembled struct{ runners.Backend }

func (undisassembled) MachineCode(context.Context) *gates.MachineCode { return nil }

// Evidence returns what was gathered so far.
func (s *Steps) Evidence() *gates.Evidence { return s.g.evidence }

// Build compiles both sides. A compile error is evidence.
func (s *Steps) Build(ctx context.Context) error {
	if s.g.evidence.Candidate != nil {
		return s.fault() // the job is too large for this host
	}
	return s.take(ctx, func() error { return s.g.build(ctx) })
}

// Correctness compares outputs, with secret cases.
func (s *Steps) Correctness(ctx context.Context) error {
	return s.take(ctx, func() error { return s.g.correctness(ctx) })
}

// Sanitize runs the candidate under the sanitizers of a gate. The job's policy may leave the gate
// out, so that backends do not start the sanitizers ahead.
func (s *Steps) Sanitize(ctx context.Context, gate *policy.SanitizeGate) error {
	return s.take(ctx, func() error { return s.g.sanitize(ctx, gate) })
}

// Round measures the shapes once, in fresh processes. The evidence does not keep the round.
func (s *Steps) Round(ctx context.Context, shapes []manifest.Shape) (round gates.Round, err error) {
	gate := s.g.rule.Gates.Performance
	err = s.take(ctx, func() error {
		within, cancel := limit(ctx, gate.Timeout)
		defer cancel()
		if round, err = s.g.round(within, shapes, s.g.progress); err != nil {
			return fmt.Errorf("measuring a round: %w", err)
		}
		return nil
	})
	return round, err
}

// take takes one step. A fault of the backend is an error here: the evidence is not judged as a whole.
func (s *Steps) take(ctx context.Context, do func() error) error {
	if err := s.g.step(ctx, do); err != nil {
		return err
	}
	return s.fault()
}

func (s *Steps) fault() error {
	if text := s.g.evidence.Fault; text != "" {
		return errors.New(text)
	}
	return nil
}
