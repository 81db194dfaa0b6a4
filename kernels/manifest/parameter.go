package manifest

import (
	"fmt"
	"slices"
)

// A Parameter is one of the kernel function's parameters as the compiled code must have it.
type Parameter struct {
	Name   string // of the argument
	Type   string // in words
	Offset int    // from the first parameter, by C's rules of alignment
	Size   int
	// Hint is what to write if the code takes HintSize bytes instead; "" if there is nothing to say.
	Hint     string
	HintSize int
}

// A tensor map is a CUtensorMap of so many bytes.
const (
	tensorMapSize  = 128
	tensorMapAlign = 64
	pointerSize    = 8
)

// Parameters returns what a kernel with these arguments is launched with, in order; nil means all
// arguments of the manifest. Its step may have scalars in addition to these.
func (m *Manifest) Parameters(args []string, own ...StepScalar) []Parameter {
	var l parameterList
	if args == nil {
		args = m.passed()
	}
	for _, name := range args {
		if i := slices.IndexFunc(own, func(s StepScalar) bool { return s.Name == name }); i >= 0 {
			l.add(name, string(own[i].DType), own[i].DType.Size(), own[i].DType.Size())
			continue
		}
		a, known := m.passable(name)
		if !known {
			continue // Parse has refused it
		}
		composite, ok := a.Composite(m)
		switch {
		case ok && a.Access == Struct:
			l.add(a.Name, "struct", composite.Size, composite.Align)
			m.hintAlign(a, composite, &l[len(l)-1])
		case ok:
			l.add(a.Name, fmt.Sprintf("vector of %d %s", len(a.Vector), a.DType), composite.Size, composite.Align)
		case a.Access == Absent:
			l.add(a.Name, "null pointer", pointerSize, pointerSize)
		case a.Access == Scalar:
			l.add(a.Name, string(a.DType), a.DType.Size(), a.DType.Size())
		case a.TensorMap != nil:
			l.add(a.Name, "tensor map", tensorMapSize, tensorMapAlign)
		case a.Structs():
			l.add(a.Name, "pointer to structs", pointerSize, pointerSize)
		default:
			l.add(a.Name, "pointer to "+string(a.DType), pointerSize, pointerSize)
		}
	}
	return l
}

// hintAlign says how to write the alignment of the tensor maps in a struct that another CUDA's header gives them.
func (m *Manifest) hintAlign(a *Argument, is Composite, p *Parameter) {
	at := slices.IndexFunc(is.Parts, func(part Part) bool { return part.TensorMap })
	if at < 0 {
		return
	}
	other := *m
	other.Arguments = slices.Clone(m.Arguments)
	for i := range other.Arguments {
		if t := other.Arguments[i].TensorMap; t != nil {
			moved := *t
			moved.Align = t.Align.other()
			other.Arguments[i].TensorMap = &moved
		}
	}
	if was, _ := a.Composite(&other); was.Size != is.Size {
		mapped, _ := other.argument(is.Parts[at].Pointer)
		p.Hint, p.HintSize = fmt.Sprintf("write align: %d in the tensor_map of %s", mapped.TensorMap.Align.bytes(), mapped.Name), was.Size
	}
}

// ReferenceParameters returns what a reference on the device is launched with.
func (m *Manifest) ReferenceParameters() []Parameter {
	var l parameterList
	for i := range m.Arguments {
		a := &m.Arguments[i]
		switch {
		case a.ScaleOf != "" || !a.inReference():
		case a.Access == Scalar:
			l.add(a.Name, string(a.DType), a.DType.Size(), a.DType.Size())
		case a.Structs():
			for _, f := range a.Fields {
				l.add(a.memberName(&f), "pointer to f32", pointerSize, pointerSize)
			}
		default:
			l.add(a.Name, "pointer to f32", pointerSize, pointerSize)
		}
	}
	if m.Reference != nil {
		for _, dim := range m.Reference.Dims {
			l.add(dim, "dim, "+string(DimType), DimType.Size(), DimType.Size())
		}
	}
	return l
}

// inReference reports whether the reference gets an argument: arrays, and scalars that are separate
// parameters. The content of a struct or a vector follows from the dims, and a setting is only for
// the kernel.
func (a *Argument) inReference() bool {
	return a.array() || a.Access == Scalar && len(a.Vector) == 0 && a.Setting == nil
}

type parameterList []Parameter

func (l *parameterList) add(name, kind string, size, align int) {
	at := 0
	if n := len(*l); n > 0 {
		at = (*l)[n-1].Offset + (*l)[n-1].Size
	}
	*l = append(*l, Parameter{Name: name, Type: kind, Offset: aligned(at, align), Size: size})
}

func aligned(n, align int) int { return (n + align - 1) / align * align }
