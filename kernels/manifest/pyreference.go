package manifest

import (
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A ReferenceDType is the format of the arrays that a reference in Python computes with.
type ReferenceDType string

// A ReferenceDevice is where the arrays of a reference in Python are.
type ReferenceDevice string

const (
	Float64 ReferenceDType = "float64"
	Float32 ReferenceDType = "float32"

	OnCPU  ReferenceDevice = "cpu"
	OnCUDA ReferenceDevice = "cuda"
)

var (
	referenceDTypes  = []ReferenceDType{Float64, Float32}
	referenceDevices = []ReferenceDevice{OnCPU, OnCUDA}
)

func (d *ReferenceDType) UnmarshalStrict(n *strict.Node) {
	strict.WordCalled(n, d, referenceDTypes, map[string]string{"f64": "float64", "double": "float64", "fp64": "float64", "f32": "float32", "float": "float32", "fp32": "float32"})
}
func (d *ReferenceDType) JSONSchema() map[string]any { return strict.WordSchema(referenceDTypes) }

func (d *ReferenceDevice) UnmarshalStrict(n *strict.Node) {
	strict.WordCalled(n, d, referenceDevices, map[string]string{"gpu": "cuda", "host": "cpu"})
}
func (d *ReferenceDevice) JSONSchema() map[string]any { return strict.WordSchema(referenceDevices) }

// maxTorch bounds an expression that stands in the manifest.
const maxTorch = 2000

// Python reports whether the reference is a function or an expression in Python.
func (r *Reference) Python() bool {
	return r != nil && (r.Torch != "" || path.Ext(r.Source) == ".py")
}

// Called returns the reference's name in messages: its file, or the place of its expression.
func (r *Reference) Called() string {
	if r.Torch != "" {
		return "reference.torch in the manifest"
	}
	return r.Source
}

// PythonReference describes the function of a reference in Python: it may have parameters of these
// names, in any order, and as many as it needs. It returns the outputs, or writes them into arrays
// of zeros that it takes as parameters.
func (m *Manifest) PythonReference() string {
	inputs, outputs := m.pythonParameters()
	name := "reference"
	if m.Reference != nil && m.Reference.Entry != "" {
		name = m.Reference.Entry
	}
	return "def " + name + "(" + strings.Join(inputs, ", ") + "): ... return " + strings.Join(outputs, ", ")
}

// pythonParameters returns the names that a reference in Python knows, dims last, and its outputs.
func (m *Manifest) pythonParameters() (inputs, outputs []string) {
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if a.ScaleOf != "" || !a.inReference() {
			continue
		}
		names := []string{a.Name}
		if a.Structs() {
			names = nil
			for _, f := range a.Fields {
				names = append(names, a.memberName(&f))
			}
		}
		if a.Access != Out {
			inputs = append(inputs, names...)
		}
	}
	for _, o := range m.Outputs() {
		outputs = append(outputs, o.Name)
	}
	for _, dim := range m.dims() {
		if !slices.Contains(inputs, dim) && !slices.Contains(outputs, dim) {
			inputs = append(inputs, dim)
		}
	}
	return inputs, outputs
}

// PythonNames are the names that a reference in Python may take as parameters, or an expression may use, in the order of the
// manifest.
func (m *Manifest) PythonNames() []string {
	inputs, outputs := m.pythonParameters()
	if m.Reference != nil && m.Reference.Torch != "" {
		return inputs // the value of an expression is the output
	}
	for _, name := range outputs {
		if !slices.Contains(inputs, name) {
			inputs = append(inputs, name)
		}
	}
	return inputs
}

// checkPythonReference checks the fields of a reference in Python. Only a run shows whether its
// function accepts its arguments.
func (c *checker) checkPythonReference(n *strict.Node) {
	r := c.m.Reference
	if r.Torch != "" {
		for _, field := range []string{"source", "entry"} {
			if given(n, field) {
				c.errorf(n.Child(field), "is not read with torch, which is the reference (delete one of them)")
			}
		}
		if strings.ContainsAny(r.Torch, "\n\r") || len(r.Torch) > maxTorch {
			c.errorf(n.Child("torch"), "is no expression of one line with at most %d characters (write a function in a .py file, as source and entry)", maxTorch)
		}
	} else if !given(n, "entry") {
		c.errorf(n.Child("entry"), "is required (write the function of %s that computes the outputs, e.g. entry: softmax)", r.Source)
	} else if r.Entry != "" && !pythonName.MatchString(r.Entry) {
		c.errorf(n.Child("entry"), "%q is no name of a function in Python (write e.g. softmax)", r.Entry)
	}
	if given(n, "launch") {
		c.errorf(n.Child("launch"), "is not read for a reference in Python (delete it)")
	}
	if given(n, "dims") {
		c.errorf(n.Child("dims"), "is not read for a reference in Python: it gets the dims whose names its parameters have (delete it)")
	}
	if r.Device == OnCUDA && c.m.Mode == ModeCPU {
		c.errorf(n.Child("device"), "cuda is for kernels of cuda mode (delete it)")
	}
}
