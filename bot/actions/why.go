package actions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// profile profiles both sides of a kernel on this machine, for /why. It judges nothing, publishes no check and counts no attempt.
func (s *session) profile(ctx context.Context, run change.Run, shapes []string) (*gates.Verdict, error) {
	p, _, err := s.planner(ctx)
	if err != nil {
		return nil, err
	}
	bundle, _, err := p.Explain(ctx, s.state.ID, s.state.Facts, planner.Rerun{Folder: run.Folder, Device: run.Device, Shapes: shapes})
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.scratch, "why-"+run.Job)
	for _, d := range []string{filepath.Join(dir, "job"), filepath.Join(dir, "scratch")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("making a scratch folder: %w", err)
		}
	}
	job, err := s.shelf().unpack(bundle, filepath.Join(dir, "job"))
	if err != nil {
		return nil, err
	}
	if err := s.fit(job, run); err != nil {
		return nil, usage.Error{Err: err}
	}
	job.Provenance.Host = s.env.runner
	out, err := s.Measure(ctx, job, filepath.Join(dir, "scratch"), s.Progress)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("profiling %s: %w", run.Name, context.Cause(ctx))
	case err != nil:
		return nil, usage.Errorf("this runner cannot profile %s: %w", run.Name, err)
	}
	v := gates.Judge(job.Asked(), job.PolicyFile, out.Evidence)
	return v, s.write(run.Name, out, job.PolicyText, v)
}
