package manifest

import (
	"fmt"
	"strings"
)

// CType returns an element's type in C. A format that C lacks is passed as its bits, and an array
// of structs by its address, whatever their names in the source are.
func (d DType) CType() string { return cTypes[d] }

var cTypes = map[DType]string{
	E4M3: "uint8_t", E5M2: "uint8_t", U8: "uint8_t", F16: "uint16_t", BF16: "uint16_t",
	F32: "float", F64: "double", I8: "int8_t", I32: "int32_t", I64: "int64_t",
	I16: "int16_t", U16: "uint16_t", U32: "uint32_t", U64: "uint64_t", Bool: "bool",
	Int4: "uint8_t", E2M1: "uint8_t", "": "void",
}

// CPrototype returns the C declaration of the kernel function under a name, after the types of its
// structs. It needs stdint.h and stdbool.h.
func (m *Manifest) CPrototype(name string) string {
	var types, params []string
	for i := range m.Arguments {
		a := &m.Arguments[i]
		composite, ok := a.Composite(m)
		switch {
		case m.Inside(a.Name):
		case ok:
			types = append(types, a.cStruct()+" "+composite.definition+";\n")
			params = append(params, a.cStruct()+" "+a.Name)
		default:
			params = append(params, parameter(cTypes[a.DType], *a))
		}
	}
	return strings.Join(types, "") + declaration(name, params)
}

// CallSignature returns what the kernel function is called with, in order. It returns nil if a
// struct or a vector is among it, because the source may give its type any name.
func (m *Manifest) CallSignature() []CParameter {
	params := []CParameter{}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if m.Inside(a.Name) {
			continue
		}
		if _, composite := a.Composite(m); composite {
			return nil
		}
		params = append(params, CParameter{a.Name, fmt.Sprintf("arguments[%d]", i), strings.TrimSuffix(strings.TrimSuffix(parameter(cTypes[a.DType], *a), a.Name), " ")})
	}
	return params
}

// cStruct is the type of a struct or a vector in the declaration.
func (a *Argument) cStruct() string { return "struct kernelgate_" + a.Name }

// ReferencePrototype returns the C declaration of the reference under a name. It works on real
// numbers: arrays are doubles, every field of an array of structs is a separate array, and scales,
// which only undo the quantisation, are left out. The dims that it asks for follow the arguments.
// It is empty for a reference on the device, which is launched and not called.
func (m *Manifest) ReferencePrototype(name string) string {
	if m.Reference == nil || m.ReferenceOnDevice() {
		return ""
	}
	var params []string
	for _, p := range m.ReferenceSignature() {
		params = append(params, p.declared())
	}
	return declaration(name, params)
}

// DeviceReferencePrototype returns the declaration of a reference on the device, for
// ReferenceParameters.
func (m *Manifest) DeviceReferencePrototype() string {
	if m.Reference == nil {
		return ""
	}
	name := m.Reference.Entry
	if e, err := ParseEntry(name); err == nil {
		name = e.Base()
	}
	var params []string
	for i := range m.Arguments {
		a := &m.Arguments[i]
		switch {
		case a.ScaleOf != "" || !a.inReference():
		case a.Access == Scalar:
			params = append(params, cTypes[a.DType]+" "+a.Name)
		case a.Structs():
			for _, f := range a.Fields {
				params = append(params, constUnlessWritten(a)+"float *"+a.memberName(&f))
			}
		default:
			params = append(params, constUnlessWritten(a)+"float *"+a.Name)
		}
	}
	for _, dim := range m.Reference.Dims {
		params = append(params, "long long "+dim)
	}
	return "__global__ " + declaration(name, params)
}

// A CParameter is one that a function in C is called with.
type CParameter struct {
	Name  string
	Field string // of the manifest that it comes from
	Type  string // such as const double *
}

func (p CParameter) declared() string {
	if strings.HasSuffix(p.Type, "*") {
		return p.Type + p.Name
	}
	return p.Type + " " + p.Name
}

// ReferenceSignature returns what a reference in C is called with, in order.
func (m *Manifest) ReferenceSignature() []CParameter {
	if m.Reference == nil || m.ReferenceOnDevice() {
		return nil
	}
	var params []CParameter
	for i, a := range m.Arguments {
		field := fmt.Sprintf("arguments[%d]", i)
		switch {
		case a.ScaleOf != "" || !a.inReference():
		case a.Access == Scalar:
			params = append(params, CParameter{a.Name, field, cTypes[a.DType]})
		case a.Structs():
			for j, f := range a.Fields {
				params = append(params, CParameter{a.memberName(&f), fmt.Sprintf("%s.fields[%d]", field, j), constUnlessWritten(&a) + "double *"})
			}
		default:
			params = append(params, CParameter{a.Name, field, constUnlessWritten(&a) + "double *"})
		}
	}
	for i, dim := range m.Reference.Dims {
		params = append(params, CParameter{dim, fmt.Sprintf("reference.dims[%d]", i), cTypes[DimType]})
	}
	return params
}

func constUnlessWritten(a *Argument) string {
	if a.Access == In {
		return "const "
	}
	return ""
}

func declaration(entry string, params []string) string {
	if entry == "" {
		return ""
	}
	return "void " + entry + "(" + strings.Join(params, ", ") + ");"
}

func parameter(ctype string, a Argument) string {
	if a.Structs() {
		return constUnlessWritten(&a) + "void *" + a.Name // whatever the source calls the struct
	}
	switch a.Access {
	case Scalar:
		return ctype + " " + a.Name
	case Absent:
		return "const void *" + a.Name
	case In:
		return "const " + ctype + " *" + a.Name
	default:
		return ctype + " *" + a.Name
	}
}

// pointerTo returns the type of a pointer to an array, up to its name.
func pointerTo(a *Argument) string {
	named := *a
	named.Name = ""
	return parameter(cTypes[a.DType], named)
}
