package actions_test

import (
	"context"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// measureScripted uses a compiler whose messages repeat its input.
func measureScripted(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
	return scripted.Runner{Refusal: "it is broken: 100%, really\n::error::forged"}.Measure(ctx, job, dir, p)
}

type silent struct{}

func (silent) Report(runners.Event) {}
