package gather

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// blame attributes a setup error: to the base or, for a new kernel, to the change, like a source
// that does not compile.
func blame(e *gates.Evidence, setup *runners.SetupError) {
	if !setup.New || e.Candidate == nil {
		e.Setup, e.FaultAt = true, setup.At
		return
	}
	e.Candidate.OK, e.Candidate.Code, e.Candidate.Error = false, "", e.Fault
	e.Candidate.Diagnostics, e.Fault = append(slices.Clip(setup.At), e.Candidate.Diagnostics...), ""
}

// CheckReference builds the reference of a job that is compiled and not run, if both sides were
// built. Otherwise nobody would notice a mistake in it before the first run.
func CheckReference(ctx context.Context, job runners.Job, e *gates.Evidence, b runners.Backend, p runners.Progress) error {
	if job.Manifest.Reference == nil || e.Fault != "" || e.Candidate == nil || !e.Candidate.OK || e.Baseline != nil && !e.Baseline.OK {
		return nil
	}
	g := &gatherer{job: job, backend: b, evidence: e, progress: standingOf(job, e, p)}
	return g.step(ctx, func() error {
		text := "compiling the reference"
		if job.Manifest.Reference.Python() {
			text = "running the reference on a small shape"
		}
		g.progress.Report(runners.Event{Gate: gates.GateBuild, Text: text})
		note, err := b.CheckReference(ctx)
		if note != "" {
			e.Notes = append(slices.Clip(e.Notes), note)
		}
		return err
	})
}
