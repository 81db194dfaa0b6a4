package cpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
)

const (
	maxArms      = 8   // that are timed next to each other: each has memory of its own
	armsHopeless = 4   // times slower than the baseline: such an arm is timed once more, and then left out
	armsMemory   = 1e9 // bytes that the arms' memory may take
)

// BuildArm compiles a candidate once. It uses no state of the worker that a different arm could change.
func (w *Worker) BuildArm(ctx context.Context, name string, side runners.Side, scratch string) (gates.Build, error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return gates.Build{}, fmt.Errorf("making room for %s: %w", name, err)
	}
	job, config := w.job, w.config
	job.Candidate, config.Scratch = side, scratch
	one := &Worker{job: job, cc: w.cc, compiler: w.compiler, config: config, rng: rand.New(rand.NewPCG(config.Seed, 0)), sides: map[runners.Role]*executable{}, batches: map[string]int{}, once: true}
	build, err := one.Build(ctx, runners.Candidate, side)
	if err == nil && build.OK {
		w.Put(name, one.sides[runners.Candidate])
	}
	return build, err
}

// TimeArms times candidates next to the baseline, a few at a time.
func (w *Worker) TimeArms(ctx context.Context, names []string, shapes []manifest.Shape, samples int) ([]runners.ArmTimes, error) {
	found := map[string]*runners.ArmTimes{}
	for _, shape := range shapes {
		batch, err := w.batch(ctx, shape)
		if err != nil {
			return nil, fmt.Errorf("finding a batch size for %s: %w", shape.Name, err)
		}
		base := w.sides[runners.Baseline]
		d, err := newDrawer(base.manifest, shape, base.toggles)
		if err != nil {
			return nil, err
		}
		seeds := make([]uint64, batch)
		for i := range seeds {
			seeds[i] = w.rng.Uint64() >> 16
		}
		if err := d.draw(w.random(shape.Name), seeds); err != nil {
			return nil, err
		}
		size := max(1, min(maxArms, int(armsMemory/float64(d.layout.Size*batch))))
		for part := range slices.Chunk(names, size) {
			f := &field{worker: w, ctx: ctx, drawer: d, shape: shape, batch: batch, found: found}
			if err := f.time(part, samples); err != nil {
				return nil, fmt.Errorf("timing %s: %w", shape.Name, err)
			}
		}
	}
	var all []runners.ArmTimes
	for _, name := range names {
		all = append(all, *found[name])
	}
	return all, nil
}

// A field times some arms on one shape.
type field struct {
	worker *Worker
	ctx    context.Context
	*drawer
	shape manifest.Shape
	batch int
	found map[string]*runners.ArmTimes
}

// A runningArm is the process of an arm, or of the baseline.
type runningArm struct {
	name  string
	child *child
	times []float64 // in microseconds
	done  bool      // it failed, or is too slow to be timed again
}

func (f *field) time(names []string, samples int) error {
	var all []*runningArm
	defer func() {
		for _, a := range all {
			a.child.close()
		}
	}()
	start := func(name string, exe *executable) error {
		program, err := exe.serving(f.shape.Dims)
		if err != nil {
			return err
		}
		c, err := startChild(f.ctx, program.path, f.layout.Size*f.batch, program.threads, f.worker.config.LaunchTimeout)
		if err == nil {
			all = append(all, &runningArm{name: name, child: c})
		}
		return err
	}
	if err := start(string(runners.Baseline), f.worker.sides[runners.Baseline]); err != nil {
		return err
	}
	for _, name := range names {
		if f.found[name] == nil {
			f.found[name] = &runners.ArmTimes{Shapes: map[string]runners.ArmSamples{}}
		}
		exe, err := f.worker.Get(name)
		if err == nil {
			err = start(name, exe)
		}
		if err != nil {
			return err
		}
	}
	// Everybody runs once before the first sample that counts, in order: the baseline's outputs are there when the others' are
	// compared with them.
	for _, a := range all {
		if err := f.launch(a, a != all[0]); err != nil {
			return err
		}
		if a != all[0] && !a.done {
			if err := f.compare(all[0], a); err != nil {
				return err
			}
		}
	}
	if err := dropHopeless(all[0], all[1:], func(a *runningArm) error { return f.launch(a, a != all[0]) }); err != nil {
		return err
	}
	for range samples {
		for _, i := range f.worker.rng.Perm(len(all)) {
			if a := all[i]; !a.done {
				if err := f.launch(a, i > 0); err != nil {
					return err
				}
			}
		}
	}
	for _, a := range all[1:] {
		if len(a.times) == 0 {
			continue
		}
		f.found[a.name].Shapes[f.shape.Name] = runners.NewArmSamples(all[0].times, a.times)
	}
	return nil
}

// dropHopeless leaves out the arms that are far slower than the baseline. One slow launch proves nothing, because the machine may
// have been busy with something else. So both are launched again, and the faster of two launches counts. All other launches so far
// are forgotten.
func dropHopeless(base *runningArm, arms []*runningArm, launch func(*runningArm) error) error {
	if err := launch(base); err != nil {
		return err
	}
	limit := armsHopeless * slices.Min(base.times)
	for _, a := range arms {
		if a.done || a.times[0] <= limit {
			continue
		}
		if err := launch(a); err != nil {
			return err
		}
		if !a.done && slices.Min(a.times) > limit {
			a.done, a.times = true, []float64{slices.Min(a.times)}
		}
	}
	for _, a := range append([]*runningArm{base}, arms...) {
		if !a.done {
			a.times = nil
		}
	}
	return nil
}

// launch times one sample of an arm.
func (f *field) launch(a *runningArm, candidate bool) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	took, failure, err := a.child.launchOn(f.images[:f.batch])
	switch {
	case err != nil:
		return err
	case failure != nil && !candidate:
		return fmt.Errorf("the baseline failed: %s", failure.Detail)
	case failure != nil:
		a.done, a.times, f.found[a.name].Failure = true, nil, failure
		return nil
	}
	a.times = append(a.times, max(took.Device.Seconds()*1e6/float64(f.batch), 1e-3))
	return nil
}

// compare compares the first outputs of an arm with the baseline's.
func (f *field) compare(base, a *runningArm) error {
	b := &bench{drawer: f.drawer}
	d, err := b.compare(f.slot(a.child.memory, 0), f.slot(base.child.memory, 0), f.images[0])
	if failed, ok := errors.AsType[*interleave.Failed](err); ok {
		a.done, a.times, f.found[a.name].Failure = true, nil, &failed.Failure
		return nil
	}
	f.found[a.name].Differs = f.found[a.name].Differs || d.Far > 0
	return err
}
