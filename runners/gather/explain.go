package gather

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// explain counts what both sides do where the times differ. It reports whether there was anything to do.
// What goes wrong is no fault of the run: the explanation says it.
func (g *gatherer) explain(ctx context.Context) (done bool, err error) {
	shapes := gates.ToExplain(g.job.Policy, g.evidence)
	if len(shapes) == 0 {
		return false, nil
	}
	g.stand() // the gates are decided, and nobody has to wait for the explanation to see that
	g.progress.Report(runners.Event{Gate: gates.GateProfile, Text: "explaining the difference"})
	ask := runners.Explanation{Shapes: shapes}
	profile := g.rule.Gates.Profile
	if profile != nil {
		ask.Metrics = profile.Metrics()
	}
	asked := g.rule.Gates.OnlyExplain
	if asked == nil {
		asked = g.rule.Gates.Performance.Explain
	}
	within, cancel := limit(ctx, asked.Timeout)
	defer cancel()
	start := time.Now()
	found, counted, err := g.backend.Explain(within, ask, g.progress)
	if ctx.Err() != nil {
		return true, fmt.Errorf("gathering evidence about %s: %w", g.job.Manifest.Name, context.Cause(ctx))
	}
	if err != nil {
		found = &gates.Explained{Skipped: err.Error()}
	}
	found.Seconds = time.Since(start).Seconds()
	g.evidence.Explained = found
	if g.evidence.MachineCode != nil && sampled(found) {
		g.show(ctx) // from the loop with most samples
	}
	g.took(gates.StepExplain, time.Since(start))
	if profile != nil && counted != nil && g.evidence.Profile == nil && subset(profile.Shapes.Pick(g.job.ShapeNames()), shapes) {
		g.evidence.Profile = counted
	}
	return true, nil
}

// sampled reports whether a profiler has found out where the warps are.
func sampled(x *gates.Explained) bool {
	return slices.ContainsFunc(x.Shapes, func(s gates.ExplainedShape) bool {
		return slices.ContainsFunc(slices.Concat(s.Baseline, s.Candidate), func(c gates.Counted) bool { return c.Samples > 0 })
	})
}

// subset reports whether all of the names are in the list.
func subset(names, list []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}
