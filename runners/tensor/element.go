package tensor

import "github.com/kernelgate/kernelgate/kernels"

// outlineMembers finds the members of an array of structs.
func (a *Arg) outlineMembers(m *kernels.Manifest, of *kernels.Argument, at kernels.Shape, toggles map[string]int) error {
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

// drawMembers draws every member and puts it into the elements, with zeros in the room between.
func (a *Arg) drawMembers(dist kernels.Distribution, seed uint64) {
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
