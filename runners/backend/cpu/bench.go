package cpu

import (
	"bytes"
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A bench holds the sides of a round on one shape.
type bench struct {
	*drawer
	job       runners.Job
	ctx       context.Context
	children  map[seat]*child // of the round, for all shapes
	programs  map[rune]string // of the sides, for this shape
	reference truth
}

func (b *bench) child(side rune) *child { return b.children[seat{side, b.programs[side]}] }

// Draw implements [interleave.Bench]. A side gets the inputs when it is its turn, and runs nothing
// before.
func (b *bench) Draw(dist distribution.Kind, seeds []uint64) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	for _, c := range b.children {
		c.begin()
	}
	return b.draw(dist, seeds)
}

// Time implements [interleave.Bench].
func (b *bench) Time(side rune, launches int) (interleave.Times, error) {
	return b.time(side, (*child).launchOn, launches)
}

func (b *bench) time(side rune, launch func(*child, [][]byte) (interleave.Times, *gates.Failure, error), launches int) (interleave.Times, error) {
	c := b.child(side)
	t, failure, err := launch(c, b.images[:launches])
	switch {
	case err != nil:
		return t, err
	case failure != nil && side == gates.SideCandidate:
		return t, &interleave.Failed{Failure: *failure}
	case failure != nil:
		return t, fmt.Errorf("the baseline failed: %s", failure.Detail)
	case side == gates.SideCandidate && c.memory.beyond():
		return t, outOfBounds()
	}
	return t, nil
}

// maxSingle is the most launches of a process that get their inputs one by one for one time.
const maxSingle = 32

// A single bench times launches that get their inputs one by one.
type single struct{ *bench }

// Single implements [interleave.Bench]. Waking a process costs more than a short kernel, so one
// launch says little; the time is the median of as many launches as fit.
func (b *bench) Single(batch, _ int) (interleave.Bench, int, error) {
	return single{b}, min(batch, maxSingle), nil
}

func (l single) Time(side rune, launches int) (interleave.Times, error) {
	return l.time(side, (*child).launchEach, launches)
}

// TimeKept implements [interleave.Bench]: every sample has a separate process, so no state outlives
// it. A comparison with single launches shows what a launch leaves to the others of its batch.
func (b *bench) TimeKept(int) (t interleave.Times, ok bool, err error) { return t, false, nil }

// State implements [interleave.Bench]. Time without a processor is not counted, and the system
// does not report the processor's speed.
func (b *bench) State() interleave.State { return interleave.State{} }

// Compare implements [interleave.Bench]. No side runs meanwhile: it compares what the launches left
// in memory.
func (b *bench) Compare(launches int) ([]interleave.Difference, error) {
	candidate, baseline := b.child(gates.SideCandidate).memory, b.child(gates.SideBaseline).memory
	all := make([]interleave.Difference, launches)
	return all, each(launches, func(i int) error {
		var err error
		all[i], err = b.compare(b.slot(candidate, i), b.slot(baseline, i), b.images[i])
		return err
	})
}

func (b *bench) compare(candidate, baseline, image []byte) (interleave.Difference, error) {
	var d interleave.Difference
	if inputs, outside := b.layout.changed(candidate, image, b.args); len(inputs) > 0 {
		return d, &interleave.Failed{Failure: gates.InputsWritten(inputs)}
	} else if outside {
		return d, outOfBounds()
	}
	got := make([][]byte, len(b.args))
	var want [][]float64
	d.Same = true
	for _, o := range tensor.Outputs(b.args) {
		got[o.Of] = b.layout.Array(candidate, o.Of)
		beside := o.Values(b.layout.Array(baseline, o.Of))
		values := make([]float64, o.Elements)
		tensor.Decode(o.DType, values, beside)
		want = append(want, values)
		d.Same = d.Same && bytes.Equal(o.Values(got[o.Of]), beside)
	}
	e, err := runners.Compare(b.manifest.ToleranceOf, b.args, got, want)
	if err != nil {
		return d, err
	}
	if d.Errors = *e; e.Bad == 0 {
		return d, nil
	}
	far, err := runners.Compare(interleave.Twice(b.manifest.ToleranceOf), b.args, got, want)
	if err == nil {
		d.Far = far.Bad
	}
	return d, err
}

func outOfBounds() error {
	return &interleave.Failed{Failure: gates.WrittenOutside()}
}

// Keep implements [interleave.Bench].
func (b *bench) Keep(launch int) (interleave.Kept, error) {
	outputs := func(side rune) [][]byte { return b.layout.Outputs(b.slot(b.child(side).memory, launch)) }
	return &kept{bench: b, dist: b.dist, seed: b.seeds[launch], candidate: outputs(gates.SideCandidate), baseline: outputs(gates.SideBaseline)}, nil
}

// A kept output waits for its check against the reference. Its input is drawn again from the seed.
type kept struct {
	bench               *bench
	dist                distribution.Kind
	seed                uint64
	candidate, baseline [][]byte
}

// Check implements [interleave.Kept].
func (k *kept) Check() (candidate, baseline *gates.Errors, err error) {
	p, err := k.bench.problem(k.dist, k.seed)
	if err != nil {
		return nil, nil, err
	}
	want, err := k.bench.reference.expected(p, false)
	if err != nil {
		return nil, nil, err
	}
	if candidate, err = runners.Compare(k.bench.manifest.ToleranceOf, p.Args, k.candidate, want); err != nil {
		return nil, nil, err
	}
	baseline, err = runners.Compare(k.bench.manifest.ToleranceOf, p.Args, k.baseline, want)
	return candidate, baseline, err
}

// Drop implements [interleave.Kept].
func (k *kept) Drop() { k.candidate, k.baseline = nil, nil }

// referenceSize returns the memory that the reference needs for a shape.
func referenceSize(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int) (int, error) {
	p, err := tensor.NewProblem(m, shape, toggles, distribution.Zero, 0)
	if err != nil {
		return 0, err
	}
	return layoutOf(p.ReferenceArgs(false)).Size, nil
}
