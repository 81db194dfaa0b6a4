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

// A referenceChecker is a backend that can build the reference without running it.
type referenceChecker interface {
	// CheckReference also returns a note about what it could not check.
	CheckReference(ctx context.Context) (note string, err error)
}

// CheckReference builds the reference of a job that is compiled and not run, if both sides were
// built. Otherwise nobody would notice a mistake in it before the first run.
func CheckReference(ctx context.Context, job runners.Job, e *gates.Evidence, b runners.Backend, p runners.Progress) error {
	checks, ok := b.(referenceChecker)
	if !ok || e.Fault != "" || e.Candidate == nil || !e.Candidate.OK || e.Baseline != nil && !e.Baseline.OK {
		return nil
	}
	g := &gatherer{job: job, backend: b, evidence: e, progress: standingOf(job, e, p)}
	return g.step(ctx, func() error {
		text := "compiling the reference"
		if job.Manifest.Reference.Python() {
			text = "running the reference on a small shape"
		}
		g.progress.Report(runners.Event{Gate: gates.GateBuild, Text: text})
		note, err := checks.CheckReference(ctx)
		if note != "" {
			e.Notes = append(slices.Clip(e.Notes), note)
		}
		return err
	})
}
