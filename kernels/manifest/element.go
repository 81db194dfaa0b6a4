package manifest

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Element is the layout of one element of an array of structs, such as a block of quantised weights, as C has it.
type Element struct {
	Members     []Member
	Size, Align int
}

// A Member is one field of every element. It is drawn, passed to a reference and compared as a
// separate array: Name is the argument's name and the field's with _ between them.
type Member struct {
	Name   string
	DType  DType
	Offset int
	Count  int   // elements in one struct
	Shape  []int // of the array that the members of all structs are
	Filling
}

// Structs reports whether an argument is an array of structs.
func (a *Argument) Structs() bool { return a.array() && len(a.Fields) > 0 }

// memberName returns the name of one member of every element, as a separate array.
func (a *Argument) memberName(f *Field) string { return a.Name + "_" + f.Name }

// An Output is an array of values that is compared: an argument, or a member of an array of structs.
type Output struct {
	Name  string
	DType DType
}

// Outputs returns what the kernel writes, in order.
func (m *Manifest) Outputs() []Output {
	var all []Output
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if a.Access != Out && a.Access != InOut {
			continue
		}
		for _, f := range a.Fields {
			all = append(all, Output{a.memberName(&f), f.DType})
		}
		if !a.Structs() {
			all = append(all, Output{a.Name, a.DType})
		}
	}
	return all
}

// maxCount bounds the elements of one member.
const maxCount = 4096

// validateElements checks an array of structs.
func (a *Argument) validateElements(n *strict.Node) {
	refuseFields(n, "an array of structs has none (write it for a field, or delete it)", "dtype", "init", "quantize", "infinities", "tensor_map", "tolerance")
	if len(a.Fields) == 0 || len(a.Fields) > maxFields {
		n.Child("fields").Errorf("has %d fields (write 1 to %d)", len(a.Fields), maxFields)
	}
	strict.Each(n.Child("fields"), a.Fields, func(at *strict.Node, f *Field) {
		refuseFields(at, "an element of an array is filled by its init (delete it)", "value", "vector", "array", "setting", "settings", "pointer", "tensor_map", "struct")
		if f.DType == "" {
			at.Child("dtype").Errorf("is required (write e.g. dtype: f16)")
			return
		}
		if a.Access == In {
			refuseFields(at, "an input is not compared (delete it, or write access: inout)", "tolerance")
		}
		if a.Access == Out {
			refuseFields(at, "an output is poisoned before every launch (delete it, or write access: inout)", "init")
			return
		}
		if at.Has("init") {
			f.Init.validate(at.Child("init"), f.DType, len(a.Shape)+1, false)
			return
		}
		f.Init.Draw = ByPolicy
		checkIndex(at.Child("init"), f.DType)
	})
}

// ElementOf returns the layout of an array of structs for one problem size.
func (m *Manifest) ElementOf(a *Argument, dims Dims, toggles map[string]int) (Element, error) {
	e := Element{Align: 1}
	shape, err := m.ShapeOf(a, dims, toggles)
	if err != nil {
		return e, err
	}
	env := m.Env(dims, toggles)
	for i := range a.Fields {
		f := &a.Fields[i]
		member := Member{Name: a.memberName(f), DType: f.DType, Count: 1, Shape: shape}
		if f.Count != nil {
			count, err := f.Count.within(env, 1, maxCount)
			if err != nil {
				return e, err
			}
			member.Count, member.Shape = int(count), append(slices.Clone(shape), int(count))
		}
		align := 1
		switch {
		case !f.DType.Packed():
			align = f.DType.Size()
		case member.Count%2 != 0:
			return e, &fault{f.Count, "is an odd count", "two elements of " + string(f.DType) + " share a byte: write an even one"}
		}
		if a.Access != Out {
			if member.Filling, err = m.filling(&f.Init, f.DType, member.Shape, env); err != nil {
				return e, err
			}
		}
		e.Align = max(e.Align, align)
		member.Offset = aligned(e.Size, align)
		e.Size = member.Offset + f.DType.Bytes(member.Count)
		e.Members = append(e.Members, member)
	}
	e.Size = aligned(e.Size, e.Align)
	if int64(e.Size)*product(shape) > maxElements {
		return e, &fault{what: "has more than 2^31 bytes", fix: "make the array smaller"}
	}
	return e, nil
}

func product(shape []int) int64 {
	n := int64(1)
	for _, length := range shape {
		n *= int64(length)
	}
	return n
}
