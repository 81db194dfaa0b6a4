package measure

import (
	"context"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/command"
)

// rivals times the manifest's other implementations on the shapes that the
// candidate was timed on. One that cannot be timed is recorded as such: it is no
// fault of the run. Only a cancelled context returns an error.
func rivals(ctx context.Context, job runners.Job, e *gates.Evidence, c command.Config, p runners.Progress) ([]gates.Rival, error) {
	if e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return nil, nil
	}
	var shapes []kernels.Shape
	for _, name := range gates.TimedShapes(job.Rule(), e) {
		if s, ok := job.Manifest.Shape(name); ok {
			shapes = append(shapes, s)
		}
	}
	var all []gates.Rival
	for i, r := range job.Manifest.Rivals {
		p.Report(runners.Event{Gate: "rivals", Text: "timing " + r.Name, Done: i, Total: len(job.Manifest.Rivals), Unit: "rivals"})
		times, err := command.RunRival(ctx, r, job.Trusted, shapes, c)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("timing the rivals of %s: %w", job.Manifest.Name, context.Cause(ctx))
		}
		if err != nil {
			all = append(all, gates.Rival{Name: r.Name, Failure: strings.TrimPrefix(err.Error(), "timing the rival "+r.Name+": ")})
		}
		all = append(all, times...)
	}
	return all, nil
}
