package tensor

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// outlineParts finds the parts of structs and vectors. Each scalar in one gets an entry in the
// argument list, so that code that passes arguments one by one (a C program that fills in a struct)
// has all of them.
func (p *Problem) outlineParts(m *manifest.Manifest, toggles map[string]int) error {
	for i := range m.Arguments {
		a := &m.Arguments[i]
		p.Args[i].Inside = m.Inside(a.Name)
		composite, ok := a.Composite(m)
		if !ok {
			continue
		}
		p.Args[i].Extent, p.Args[i].Align, p.Args[i].Elements = composite.Size, composite.Align, 0
		for _, part := range composite.Parts {
			at, pointer := -1, ""
			switch {
			case part.Value != nil:
				value, err := m.PartValue(part, p.Shape.Dims, toggles)
				if err != nil {
					return fmt.Errorf("preparing %s of %s for %s: %w", part.Name, m.Name, p.Shape, err)
				}
				leaf := Arg{Name: part.Name, DType: part.DType, Access: manifest.Scalar, Elements: 1, Scales: -1, Inside: true, OfComposite: true}
				leaf.set(value)
				at = len(p.Args)
				p.Args = append(p.Args, leaf)
			case part.Pointer != manifest.NoPointer:
				pointer = part.Pointer
				at = slices.IndexFunc(m.Arguments, func(o manifest.Argument) bool { return o.Name == part.Pointer })
			}
			p.Args[i].Parts = append(p.Args[i].Parts, Part{Offset: part.Offset, Arg: at, Pointer: pointer, TensorMap: part.TensorMap})
		}
	}
	return nil
}

// Passed returns the bytes of a parameter that is passed by value, little endian: a scalar, a null
// pointer, or a struct or vector that is assembled from its parts, with zero padding and zeros for
// tensor maps. address returns where an array lies.
func (a Arg) Passed(args []Arg, address func(arg int) uint64) []byte {
	switch {
	case a.Access == manifest.Absent:
		return make([]byte, 8)
	case a.Parts == nil:
		return a.Bytes
	}
	out := make([]byte, a.Extent)
	for _, p := range a.Parts {
		if p.Arg < 0 && p.Pointer != "" { // scratch, which follows the problem's arguments
			p.Arg = slices.IndexFunc(args, func(o Arg) bool { return o.Name == p.Pointer })
		}
		switch {
		case p.Arg < 0 || p.TensorMap:
		case args[p.Arg].Array():
			le.PutUint64(out[p.Offset:], address(p.Arg))
		default:
			copy(out[p.Offset:], args[p.Arg].Bytes)
		}
	}
	return out
}

// Alignment returns C's alignment of a parameter that is passed by value.
func (a Arg) Alignment() int {
	switch {
	case a.Access == manifest.Absent:
		return 8
	case a.Parts == nil:
		return a.DType.Size()
	}
	return a.Align
}

// outlineMembers finds the members of an array of structs.
func (a *Arg) outlineMembers(m *manifest.Manifest, of *manifest.Argument, at manifest.Shape, toggles map[string]int) error {
	element, err := m.ElementOf(of, at.Dims, toggles)
	if err != nil {
		return err
	}
	a.Extent = a.Elements * element.Size
	for _, f := range element.Members {
		a.Members = append(a.Members, Arg{
			Name: f.Name, DType: f.DType, Access: a.Access, Shape: f.Shape, Elements: a.Elements * f.Count,
			Offset: f.Offset, Count: f.Count, Pitch: element.Size, Filling: f.Filling, Finite: true, Scales: -1,
		})
	}
	return nil
}

// drawMembers draws every member and writes it into the elements, with zero padding.
func (a *Arg) drawMembers(dist distribution.Kind, seed uint64) {
	a.Bytes = make([]byte, a.Size())
	for i := range a.Members {
		f := &a.Members[i]
		values := make([]float64, f.Elements)
		f.fill(values, dist, seed)
		bytes := make([]byte, f.Size())
		Encode(f.DType, bytes, values)
		f.Real = make([]float64, f.Elements)
		Decode(f.DType, f.Real, bytes)
		f.Original = f.Real
		size := f.DType.Bytes(f.Count)
		for k := range a.Elements {
			copy(a.Bytes[k*f.Pitch+f.Offset:], bytes[k*size:(k+1)*size])
		}
	}
}
