package cuda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
)

// maxArms is how many arms one worker times: an arm that takes the GPU's context with it costs the times of these.
const maxArms = 64

// BuildArm compiles a candidate once. It uses no state of the backend that a different arm could change.
func (b *Backend) BuildArm(ctx context.Context, name string, side runners.Side, scratch string) (gates.Build, error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return gates.Build{}, fmt.Errorf("making room for %s: %w", name, err)
	}
	one := b.fork(side, scratch)
	build, err := one.build(ctx, runners.Candidate, side)
	if err == nil && build.OK {
		b.Put(name, one.sides[runners.Candidate])
	}
	return build, err
}

// fork returns a backend for one candidate, with the same compilers and the same GPU.
func (b *Backend) fork(side runners.Side, scratch string) *Backend {
	job, config := b.job, b.config
	job.Candidate, config.Scratch = side, scratch
	return &Backend{
		job: job, config: config, cuda: b.cuda, installed: b.installed, found: b.found, device: b.device, seed: b.seed,
		rng: rand.New(rand.NewPCG(b.seed, 0)), sides: map[runners.Role]*sides.Built{}, kinds: map[runners.Role]*codes{}, made: map[madeCode]*codes{}, compiling: map[string]*compilation{},
		whole: b.whole, once: true,
	}
}

// TimeArms times candidates next to the baseline, in one process or, if there are many, in some.
func (b *Backend) TimeArms(ctx context.Context, names []string, shapes []manifest.Shape, samples int) ([]runners.ArmTimes, error) {
	found := map[string]runners.ArmTimes{}
	for part := range slices.Chunk(names, maxArms) {
		for left := part; len(left) > 0; {
			before := len(found)
			if err := b.timeArms(ctx, left, shapes, samples, found); err != nil {
				return nil, err
			}
			left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { _, ok := found[name]; return ok })
			if len(found) == before {
				return nil, errors.New("the worker timed nothing")
			}
		}
	}
	var all []runners.ArmTimes
	for _, name := range names {
		all = append(all, found[name])
	}
	return all, nil
}

// timeArms has one worker time arms. If one of them ends the worker, only failures are found.
func (b *Backend) timeArms(ctx context.Context, names []string, shapes []manifest.Shape, samples int, found map[string]runners.ArmTimes) error {
	request := worker.Request{
		Task: worker.TaskArms, Manifest: b.job.ManifestText, Timeout: b.config.LaunchTimeout, Program: append(slices.Clone(b.config.Program), sideWord),
		Seed: b.rng.Uint64() >> 16, Baseline: b.sides[runners.Baseline], Samples: samples, Distributions: []distribution.Kind{distribution.Normal},
	}
	if request.Baseline == nil {
		return errors.New("the baseline is not built")
	}
	for _, name := range names {
		built, err := b.Get(name)
		if err != nil {
			return err
		}
		request.Arms = append(request.Arms, worker.Arm{Name: name, Built: *built})
	}
	for _, shape := range shapes {
		request.Plans = append(request.Plans, worker.Plan{Shape: shape})
	}
	var err error
	if request.Oracle, err = b.oracle(ctx); err != nil {
		return err
	}
	return b.start(ctx, request, func(r worker.Reply) {
		if a := r.Arm; a != nil {
			found[a.Name] = runners.ArmTimes{Failure: a.Failure, Differs: a.Differs, Shapes: a.Shapes}
		}
	})
}
