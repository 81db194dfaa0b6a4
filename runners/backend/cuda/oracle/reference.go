package oracle

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
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
			a.Arg = flat(a.Arg, manifest.F32)
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

// flat is an array as a reference has it: real numbers, also of a member of structs without what lies between them.
func flat(a tensor.Arg, format manifest.DType) tensor.Arg {
	a.DType, a.Bytes, a.Offset, a.Count, a.Pitch = format, nil, 0, 0, 0
	return a
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
	for i, seen := range r.seen {
		if !seen.Array() || !seen.Reads() {
			continue
		}
		if err := s.Widen(launch, seen, manifest.F32, original, r.Slot.Slice(int64(r.Layout.Offsets[i]), int64(r.Args[i].Size()))); err != nil {
			return err
		}
	}
	return nil
}

// Compare holds one launch's outputs against what the reference wrote.
func (r *Reference) Compare(got Target, tolerance runners.ToleranceOf) (*gates.Errors, error) {
	all, _, err := r.o.Compare(got, r.outputs, tolerance)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Outputs is where the reference wrote them.
func (r *Reference) Outputs() Target { return r.outputs }

// NewExpected makes room for outputs that are computed elsewhere, in float64.
func (o *Oracle) NewExpected(p *tensor.Problem) (*Reference, error) {
	r := &Reference{o: o, problem: p}
	for _, a := range p.Reference() {
		if a.Array() && a.Writes() {
			r.Args = append(r.Args, flat(a.Arg, manifest.F64))
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

// Problem is what the outputs are of.
func (r *Reference) Problem() *tensor.Problem { return r.problem }

// Set puts the outputs there, as float64 and in the order of the manifest.
func (r *Reference) Set(want [][]byte) error {
	if len(want) != len(r.Args) {
		return fmt.Errorf("%d outputs were computed, and the problem has %d", len(want), len(r.Args))
	}
	for i, data := range want {
		if len(data) == 0 {
			continue
		}
		if err := r.o.stream.ToDevice(r.Slot.Slice(int64(r.Layout.Offsets[i]), int64(len(data))), data); err != nil {
			return fmt.Errorf("writing the expected outputs: %w", err)
		}
	}
	return nil
}

// SetFrom is Set with outputs that lie in other memory of the GPU, at the given places.
func (r *Reference) SetFrom(from driver.Buffer, at []int) error {
	if len(at) != len(r.Args) {
		return fmt.Errorf("%d outputs were computed, and the problem has %d", len(at), len(r.Args))
	}
	for i, a := range r.Args {
		if a.Elements == 0 {
			continue
		}
		size := int64(8 * a.Elements)
		if err := r.o.stream.CopyDevice(r.Slot.Slice(int64(r.Layout.Offsets[i]), size), from.Slice(int64(at[i]), size)); err != nil {
			return fmt.Errorf("copying the expected outputs: %w", err)
		}
	}
	return nil
}
