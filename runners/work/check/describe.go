package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// A Described is a kernel as the base has it, and what a change to it is asked.
type Described struct {
	plan.Described
	Device   gates.Device // of this host; without a name if the kernel cannot run here
	NoDevice string       // why not
}

// KernelNames lists the kernels of the base by their folders.
func KernelNames(ctx context.Context, opt Options) ([]string, error) {
	c, err := open(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer c.close()
	keys, err := c.repo.Kernels(ctx, c.tip)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, key := range keys {
		names = append(names, manifest.FolderOf(key))
	}
	return names, nil
}

// Describe reads one kernel of the base, and looks for a device of this host that can run it.
func Describe(ctx context.Context, opt Options) (Described, error) {
	c, err := open(ctx, opt)
	if err != nil {
		return Described{}, err
	}
	defer c.close()
	described, err := c.plan.Describe(ctx, c.tip)
	if err != nil {
		return Described{}, err
	}
	d, job := Described{Described: described}, described.Job
	ctx, end := context.WithCancel(ctx)
	defer end()
	backend, err := opt.Open(ctx, job, filepath.Join(filepath.Dir(job.Trusted), "device"))
	var setup *runners.SetupError
	switch {
	case err == nil:
		d.Device = backend.Device()
	case errors.As(err, &setup):
		d.NoDevice = setup.Error()
	default:
		d.NoDevice = fmt.Sprintf("the kernel cannot run on this host: %v", err)
	}
	return d, nil
}
