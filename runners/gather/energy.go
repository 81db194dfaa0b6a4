package gather

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// energy measures the energy of launches, and adds it to what earlier runs of this machine code have measured.
func (g *gatherer) energy(ctx context.Context) error {
	within, cancel := limit(ctx, g.rule.Gates.Energy.Timeout)
	defer cancel()
	g.progress.Report(runners.Event{Gate: gates.GateEnergy, Text: "measuring energy"})
	start := time.Now()
	e, err := g.backend.Energy(within, g.rule.Gates.Energy, g.progress)
	if err != nil {
		return fmt.Errorf("measuring energy: %w", err)
	}
	e.Seconds = time.Since(start).Seconds()
	e.Series = slices.Concat(g.series, e.Series)
	g.evidence.Energy = e
	return nil
}

// keepEnergy keeps what was measured, although everything else is repeated: otherwise each repetition would be a new chance. A
// launch that failed may have been the host's fault.
func (g *gatherer) keepEnergy(e *gates.Energy) {
	if e != nil && e.Failure == nil {
		g.series = e.Series
	}
}

// moreEnergy measures a further time if the gate is not decided.
func (g *gatherer) moreEnergy(ctx context.Context) error {
	v := gates.Judge(g.job.Policy, "", g.evidence)
	open := slices.ContainsFunc(v.Gates, func(r gates.GateResult) bool {
		return r.Gate == gates.GateEnergy && r.Reason == gates.ReasonInconclusive
	})
	if g.evidence.Energy == nil || !open {
		return nil
	}
	g.keepEnergy(g.evidence.Energy)
	return g.energy(ctx)
}
