package measure

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
)

// A looker shows one case in full.
type looker interface {
	Look(ctx context.Context, c runners.Case) (*runners.Look, error)
}

// Look builds both sides of the job and runs one case on them.
func (c Config) Look(ctx context.Context, job runners.Job, one runners.Case, scratch string, p runners.Progress) (*runners.Look, error) {
	if _, err := c.layIn(job); err != nil {
		return nil, err
	}
	b, err := c.open(ctx, job, scratch, nil)
	if err != nil {
		return nil, err
	}
	l, ok := b.(looker)
	if !ok {
		return nil, strict.Mistakef("%s is measured by a harness of its own, which alone sees its outputs: a single case cannot be shown (run the harness by hand with KERNELGATE_MODE=correctness)", job.Manifest.Name)
	}
	build := func(role runners.Role, side runners.Side) error {
		p.Report(runners.Event{Gate: gates.GateBuild, Text: "compiling the " + string(role)})
		built, err := b.Build(ctx, role, side)
		if err == nil && !built.OK {
			err = strict.Mistakef("the %s does not build: %s", role, built.Error)
		}
		return err
	}
	if job.Baseline != nil {
		if err := build(runners.Baseline, *job.Baseline); err != nil {
			return nil, err
		}
	}
	if err := build(runners.Candidate, job.Candidate); err != nil {
		return nil, err
	}
	p.Report(runners.Event{Gate: gates.GateCorrectness, Text: one.Name()})
	found, err := l.Look(ctx, one)
	if err != nil {
		return nil, fmt.Errorf("repeating the case %s: %w", one.Name(), err)
	}
	return found, nil
}
