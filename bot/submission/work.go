package submission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates/result"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// progress keeps the last event of the run.
type progress struct {
	s  *Service
	id string
}

func (p progress) Report(e runners.Event) { p.s.progressed(p.id, e) }

// work takes one submission to its result, by the machinery of kernelgate check.
func (l *Local) work(ctx context.Context, one *Submission) error {
	l.machine.Lock()
	defer l.machine.Unlock()
	l.log.Info("measuring a submission", "handle", one.Handle, "kernel", one.Kernel, "intent", one.Intent)
	rec := &record{s: l.Service, one: one, at: l.clock()}
	opt := l.opt
	opt.Head, opt.Kernels, opt.Results = one.Head, []string{one.Asked.Kernel}, filepath.Join(l.dir, one.Handle, "run")
	opt.Prepare = func(job *runners.Job) {
		if one.Intent == result.Probe {
			job.Policy = job.Policy.Probe()
			return
		}
		rec.job, rec.gate = *job, job.Rule().Gates.Performance
		job.Record = rec
	}
	var o outcome
	o.err = check.Run(ctx, opt, progress{l.Service, one.id()}, func(r check.Result) error {
		o.got = &r
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.spent, o.gate = rec.spent, rec.gate
	done := l.conclude(ctx, one, o)
	for name, text := range map[string]string{ReportFile: o.answer(done), LogFile: o.log()} {
		if err := l.write(done.Handle, name, []byte(text)); err != nil {
			return fmt.Errorf("storing the answer: %w", err)
		}
	}
	if err := l.keep(ctx, done); err != nil {
		return err
	}
	l.done(done)
	return nil
}

// static compiles on this machine, and waits while something else is measured.
func (l *Local) static(ctx context.Context, k kernel, one *Submission) (*Static, error) {
	if err := l.draft(ctx, k, one); err != nil {
		return nil, err
	}
	results, err := os.MkdirTemp(l.dir, "static-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the build: %w", err)
	}
	defer os.RemoveAll(results)
	opt := l.opt
	opt.Head, opt.Kernels, opt.Results, opt.Static = one.Head, []string{one.Asked.Kernel}, results, true
	l.machine.Lock()
	defer l.machine.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := &Static{Kernel: one.Kernel}
	err = check.Run(ctx, opt, nobody{}, func(r check.Result) error {
		if r.Verdict == nil {
			out.Summary = "This host does not compile the kernel: " + r.LeftOut
			return nil
		}
		out.fill(r.Verdict, r.Evidence)
		return nil
	})
	return out, err
}

// nobody hears of progress.
type nobody struct{}

func (nobody) Report(runners.Event) {}
