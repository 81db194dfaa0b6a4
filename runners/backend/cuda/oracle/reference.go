package oracle

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Reference is one launch of the base's reference: real numbers as floats, no
// scales.
type Reference struct {
	o       *Oracle
	problem *tensor.Problem
	Args    []tensor.Arg // as the reference takes them
	seen    []tensor.Seen
	Layout  tensor.Layout
	Slot    driver.Buffer
	outputs Target
}

// NewReference makes room for the reference of a problem.
func (o *Oracle) NewReference(p *tensor.Problem) (*Reference, error) {
	r := &Reference{o: o, problem: p, seen: p.Reference()}
	for _, a := range r.seen {
		if a.Array() {
			a.DType, a.Bytes = manifest.F32, nil
		}
		r.Args = append(r.Args, a.Arg)
	}
	r.Layout = tensor.NewLayout(r.Args, 0)
	var err error
	if r.Slot, err = o.ctx.Alloc(int64(r.Layout.Size)); err != nil {
		return nil, err
	}
	places, err := o.NewPlaces([]driver.DevicePtr{r.Slot.Ptr})
	r.outputs = TargetOf(r.Args, r.Layout, places)
	return r, err
}

// Free gives the reference's memory back.
func (r *Reference) Free() error {
	if err := r.o.free(r.outputs.Places); err != nil {
		return err
	}
	return r.o.ctx.Free(r.Slot)
}

// Prepare widens one launch's inputs of a batch for the reference; with original,
// they are what they were before they were quantised.
func (r *Reference) Prepare(s *InputBatch, launch int, original bool) error {
	// What the reference forgets to write is NaN.
	if err := r.o.stream.Fill8(r.Slot, 0xFF); err != nil {
		return err
	}
	flag := uint64(0)
	if original {
		flag = 1
	}
	for i, seen := range r.seen {
		for _, in := range s.inputs {
			if in.arg != seen.Of || in.member != seen.Member {
				continue
			}
			args := new(driver.Args).Bytes(s.spec(in, launch), 8).Pointer(r.Slot.Ptr).Uint64(uint64(r.Layout.Size)).Uint64(uint64(r.Layout.Offsets[i])).Uint64(flag)
			if err := r.o.run("widen", r.Args[i].Elements/2, 1, args); err != nil {
				return err
			}
		}
	}
	return nil
}

// Compare holds one launch's outputs against what the reference wrote.
func (r *Reference) Compare(got Target, tolerance manifest.Tolerance) (*gates.Errors, error) {
	all, _, err := r.o.Compare(r.problem, got, r.outputs, tolerance)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// NewExpected makes room for outputs that are computed elsewhere, in float64.
func (o *Oracle) NewExpected(p *tensor.Problem) (*Reference, error) {
	r := &Reference{o: o, problem: p}
	for _, a := range p.Reference() {
		if a.Array() && a.Writes() {
			a.DType, a.Bytes = manifest.F64, nil
			r.Args = append(r.Args, a.Arg)
		}
	}
	r.Layout = tensor.NewLayout(r.Args, 0)
	var err error
	if r.Slot, err = o.ctx.Alloc(int64(r.Layout.Size)); err != nil {
		return nil, err
	}
	places, err := o.NewPlaces([]driver.DevicePtr{r.Slot.Ptr})
	r.outputs = TargetOf(r.Args, r.Layout, places)
	return r, err
}

// Shape is the size of the problem.
func (r *Reference) Shape() manifest.Shape { return r.problem.Shape }

// Set puts the outputs there, in the order of the manifest.
func (r *Reference) Set(want [][]float64) error {
	if len(want) != len(r.Args) {
		return fmt.Errorf("%d outputs were computed, and the problem has %d", len(want), len(r.Args))
	}
	for i, values := range want {
		data := make([]byte, 8*len(values))
		tensor.Encode(manifest.F64, data, values)
		if len(data) == 0 {
			continue
		}
		if err := r.o.stream.ToDevice(r.Slot.Slice(int64(r.Layout.Offsets[i]), int64(len(data))), data); err != nil {
			return fmt.Errorf("writing the expected outputs: %w", err)
		}
	}
	return nil
}
