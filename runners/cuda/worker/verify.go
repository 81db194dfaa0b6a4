package worker

import (
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
)

// verifyAll runs the candidate once on every set and keeps the outputs, whose
// errors are known now: a timed launch whose bits agree is as right as they are.
func (b *bench) verifyAll(set *setting) error {
	k := b.kernels[gates.SideCandidate]
	size := int64(set.layout.Size)
	slots := make([][]byte, len(set.sets))
	launch, err := b.prepare(k, set.plan.Sets[0].Shape.Dims, set.sets[0].Args, set.layout, set.slots.Ptr)
	if err != nil {
		return err
	}
	for i := range set.sets {
		if err := b.stream.CopyDevice(set.slots.Slice(0, size), set.images.Slice(int64(i)*size, size)); err != nil {
			return err
		}
		if err := launch(); err != nil {
			return err
		}
		if err := b.wait(k.who); err != nil {
			return err
		}
		slots[i] = make([]byte, size)
		if err := b.stream.ToHost(slots[i], set.slots.Slice(0, size)); err != nil {
			return err
		}
	}
	return parallel(len(slots), func(i int) error {
		set.right[i] = set.layout.Outputs(slots[i])
		var err error
		set.errors[i], err = runners.Compare(b.manifest, set.sets[i].Args, set.right[i], set.want[i])
		return err
	})
}

// verify compares every output of the batch that was timed last, and one slot in
// full: inputs and guards.
func (b *bench) verify(set *setting, shift int) error {
	size := int64(set.layout.Size)
	whole := b.rng.IntN(set.plan.Batch)
	for i := range set.plan.Batch {
		from := (i + shift) % len(set.sets)
		slot := set.slots.Slice(int64(i)*size, size)
		got, err := b.outputs(set, slot)
		if err != nil {
			return err
		}
		e := set.errors[from]
		if !equal(got, set.right[from]) {
			if e, err = runners.Compare(b.manifest, set.sets[from].Args, got, set.want[from]); err != nil {
				return err
			}
		}
		set.series.Verified++
		runners.Worse(set.series.Worst, e)
		if i == whole {
			if err := b.untouched(set, slot, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// outputs brings only the outputs of a slot to the host.
func (b *bench) outputs(set *setting, slot driver.Buffer) ([][]byte, error) {
	out := make([][]byte, len(set.sets[0].Args))
	for i, a := range set.sets[0].Args {
		if !a.Array() || !a.Writes() {
			continue
		}
		out[i] = make([]byte, a.Size())
		if err := b.stream.ToHost(out[i], slot.Slice(int64(set.layout.Offsets[i]), int64(a.Size()))); err != nil {
			return nil, b.blame(candidate, err)
		}
	}
	return out, nil
}

// untouched sees to it that the kernel left everything alone but its output.
func (b *bench) untouched(set *setting, slot driver.Buffer, from int) error {
	data := make([]byte, set.layout.Size)
	if err := b.stream.ToHost(data, slot); err != nil {
		return b.blame(candidate, err)
	}
	inputs, outside := set.layout.Changed(data, set.sets[from].Args)
	switch {
	case len(inputs) > 0:
		return &kernelError{candidate, gates.Failure{Kind: "inputs", Detail: "the kernel wrote to its input " + strings.Join(inputs, ", ")}}
	case outside:
		return &kernelError{candidate, gates.Failure{Kind: "out-of-bounds", Detail: "the kernel wrote outside its arguments"}}
	}
	return nil
}
