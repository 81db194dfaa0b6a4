package check

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/measure"
)

// measure gathers evidence about a kernel. Where it is only compiled and no architecture is
// named, that is done for every one that the candidate is built for; the first that does
// not pass is told, for it decides, and the last otherwise.
func (c *checker) measure(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error) {
	devices := measure.Devices(job)
	if !c.opt.Static || c.opt.Arch != "" || len(devices) < 2 {
		return c.opt.Measure(ctx, job, scratch, progress)
	}
	var last runners.Measured
	notes := job.Notes
	for i, device := range devices {
		config := c.opt.Config
		config.Arch = device
		job.Notes = append(slices.Clip(notes), measure.CompiledFor(devices[:i+1], devices[i+1:]))
		before := last.BuildLog
		var err error
		if last, err = config.Measure(ctx, job, filepath.Join(scratch, device), progress); err != nil {
			return last, err
		}
		last.BuildLog = before + last.BuildLog
		if gates.Judge(job.Policy, job.PolicyFile, last.Evidence).Outcome != gates.Pass {
			break
		}
	}
	return last, nil
}
