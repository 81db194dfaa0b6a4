// Package perform carries out the searches of jobs: a search tunes the candidate, or finds the commit that made a kernel slower
// or wrong. The result is a [search.Report].
package perform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/arm"
	"github.com/kernelgate/kernelgate/runners/work/bisect"
	"github.com/kernelgate/kernelgate/runners/work/search"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

// Measure returns a function for agent.Config.Measure. The function gathers evidence about a job. If the job
// asks for a search, it carries out the search instead.
func Measure(host arm.Host) func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
	return func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		if job.Search == nil {
			return host.Measure(ctx, job, scratch, p)
		}
		return Run(ctx, host, job, scratch, p)
	}
}

// Run carries out the search of a job. It writes only to scratch. If the search fails, the evidence has the
// fault. Run returns an error only if the context was cancelled.
func Run(ctx context.Context, host arm.Host, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
	r, files, err := run(ctx, host, job, scratch, p)
	if ctx.Err() != nil {
		return runners.Measured{}, fmt.Errorf("searching %s: %w", job.Manifest.Name, context.Cause(ctx))
	}
	if err != nil {
		return faulty(job, err), nil
	}
	file := filepath.Join(scratch, search.ReportFile)
	if err := r.Write(file); err != nil {
		return faulty(job, err), nil
	}
	return runners.Measured{Evidence: job.NoEvidence(), Artifacts: append([]string{file}, files...)}, nil
}

// faulty returns evidence that says why there is no report. A usage.Error means that the request is wrong:
// the runner is not at fault.
func faulty(job runners.Job, err error) runners.Measured {
	e := job.Fault(err)
	_, e.Setup = errors.AsType[usage.Error](err)
	return runners.Measured{Evidence: e}
}

func run(ctx context.Context, host arm.Host, job runners.Job, scratch string, p runners.Progress) (*search.Report, []string, error) {
	if err := job.Search.Check(); err != nil {
		return nil, nil, usage.Error{Err: err}
	}
	if job.Search.Tune != nil {
		return tuned(ctx, host, job, scratch, p)
	}
	r, err := bisected(ctx, host, job, filepath.Join(scratch, "bisect"), p)
	return r, nil, err
}

func tuned(ctx context.Context, host arm.Host, job runners.Job, scratch string, p runners.Progress) (*search.Report, []string, error) {
	folder := filepath.Join(scratch, "results")
	s, err := tune.RunJob(ctx, host, job, folder, filepath.Join(scratch, "tune"), p)
	if err != nil {
		return nil, nil, err
	}
	result := s.Result
	r := &search.Report{
		Kind: search.Tune, Kernel: job.Manifest.Name, Device: result.Header.Device, Found: result.Winner != "",
		Headline: result.Conclusion(), Text: result.Report(tune.ReportOptions{Comment: true}), Seconds: result.Seconds,
	}
	if r.Found {
		r.Diff = tune.Diff(s.ManifestFile, s.Manifest, result.Find(result.Winner).Candidate, s.Sources, s.PathOf)
	}
	return r, []string{filepath.Join(s.Folder, tune.LogFile)}, nil
}

func bisected(ctx context.Context, host arm.Host, job runners.Job, scratch string, p runners.Progress) (*search.Report, error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	found, err := bisect.RunJob(ctx, host, job, scratch, p)
	nothing := errors.Is(err, bisect.ErrNotWorse)
	if err != nil && !nothing {
		return nil, err
	}
	headline, text, _ := strings.Cut(found.Text(err), "\n")
	r := &search.Report{
		Kind: search.Bisect, Kernel: found.Kernel, Device: found.Device.Name, Found: !nothing,
		Headline: headline, Text: strings.TrimLeft(text, "\n"), Seconds: found.Seconds,
	}
	if r.Found {
		result := found.Result
		r.First, r.Last, r.Between, r.Error = &found.Commits[result.First], found.Good.SHA, len(result.Between()), result.Delta
		if result.Last >= 0 {
			r.Last = found.Commits[result.Last].SHA
		}
		r.Proven = !result.Unsure()
	}
	return r, nil
}
