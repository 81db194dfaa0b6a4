package serve

import (
	"context"
	"log/slog"
	"os"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/agent"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/measure"
	"github.com/kernelgate/kernelgate/runners/progress"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// Measuring is how a runner of this program measures.
type Measuring struct {
	Worker []string // command that starts a GPU worker
	Device int      // which GPU
	Getenv func(string) string
	Log    *slog.Logger // gets progress; nil discards
}

// Measure gathers evidence about a job; it is agent.Config's.
func (m Measuring) Measure(ctx context.Context, job bundle.Job, scratch string, p runners.Progress) (agent.Outcome, error) {
	job.Policy.Narrow(job.Shapes, job.Seeds)
	c := measure.Config{
		Scratch: scratch, ManifestText: job.ManifestText, Worker: m.Worker, Device: m.Device,
		Static: job.Static, Arch: job.Arch, Rivals: job.Rivals, Getenv: m.Getenv,
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if cache, err := toolchain.DefaultCache(c.Getenv); err == nil {
		c.Cache = cache.Dir // without one it builds anew
	}
	if m.Log != nil {
		p = both{p, &progress.Plain{Out: lines{m.Log.With("kernel", job.Manifest.Name)}}}
	}
	out, err := measure.Run(ctx, job.Job, c, p)
	return agent.Outcome{Evidence: out.Evidence, BuildLog: out.BuildLog, Artifacts: out.Artifacts}, err
}

// both tells the server and the log.
type both [2]runners.Progress

func (b both) Report(e runners.Event) {
	for _, p := range b {
		p.Report(e)
	}
}

// lines logs what is written, a line at a time.
type lines struct{ log *slog.Logger }

func (l lines) Write(p []byte) (int, error) {
	l.log.Info(string(trimNewline(p)))
	return len(p), nil
}

func trimNewline(p []byte) []byte {
	if n := len(p); n > 0 && p[n-1] == '\n' {
		return p[:n-1]
	}
	return p
}
