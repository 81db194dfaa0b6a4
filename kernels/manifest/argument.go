package manifest

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Access says what the kernel does with an argument.
type Access string

const (
	In     Access = "in"
	Out    Access = "out"
	InOut  Access = "inout"
	Scalar Access = "scalar" // passed by value
	Struct Access = "struct" // passed by value, with fields
	Absent Access = "absent" // a pointer that is null
)

var accesses = []Access{In, Out, InOut, Scalar, Struct, Absent}

func (a *Access) UnmarshalStrict(n *strict.Node) {
	if text, _ := n.Text(); text == string(Scratched) {
		n.Errorf("scratch is of the implementation (write it in a separate list, e.g. scratch: [{name: partial, dtype: f32, shape: [S, D]}], and name it in the args of a step)")
		return
	}
	strict.Word(n, a, accesses)
}
func (a *Access) JSONSchema() map[string]any { return strict.WordSchema(accesses) }

// An Argument is one parameter of the kernel function.
type Argument struct {
	Name     string    `yaml:"name" required:"true" eg:"q" bounds:"(a C identifier)" doc:"The parameter's name."`
	DType    DType     `yaml:"dtype" eg:"f32" default:"(required except for struct and absent)" doc:"Format of an element. The format of a scalar or a struct member has whole bytes and is not fp8."`
	Access   Access    `yaml:"access" required:"true" eg:"inout" doc:"What the kernel does with the array: read it (in), write it (out), or both (inout). scalar or struct: a parameter passed by value. absent: a null pointer."`
	Shape    []Expr    `yaml:"shape" eg:"[B, H, S, D]" default:"(required for an array)" bounds:"1 to 8 entries" doc:"Axes of an array in row-major order. Each is an expression over the dims."`
	Init     Init      `yaml:"init" eg:"{draw: offsets, total: S}" default:"(distribution; required for integers)" doc:"How an input is filled: the name of a draw or a distribution, bounds, or a mapping. distribution means the distributions that the policy names."`
	Quantize *Quantize `yaml:"quantize" eg:"{scale: q_scale}" doc:"Draw the values as real numbers, and quantise them with one scale per group."`
	Value    *Expr     `yaml:"value" eg:"1/sqrt(D)" default:"(required for a scalar without setting)" doc:"Value of a scalar, which the reference sees too."`

	Setting *Expr `yaml:"setting" half:"implementation" eg:"SPLITS" doc:"cuda: value of a scalar that only the kernel needs, such as a number of splits. It replaces value. The reference does not see the scalar, and a change may edit its setting."`

	Vector []Expr  `yaml:"vector" eg:"[B, H, 1]" bounds:"2 to 4 entries" doc:"Lanes of a scalar of a vector type such as uint3 or float4. Replaces value."`
	Fields []Field `yaml:"fields" eg:"[{name: q, pointer: q}, {name: scale, dtype: f32, value: 1/sqrt(D)}, {name: bias, pointer: none}]" default:"(required for a struct)" bounds:"1 to 64 entries" doc:"Members of a struct, in the layout of C. Arrays that members point to, and nested structs, are further arguments of the manifest; the kernel function has no separate parameters for them. With a shape, these are the members of each element of an array of structs."`

	TensorMap *TensorMap `yaml:"tensor_map" half:"implementation" eg:"{box: [1, 1, 64, D]}" doc:"cuda, sm_90 and later: pass the array as a CUtensorMap instead of a pointer. A Triton kernel gets a TensorDescriptor, on every GPU."`

	Tolerance *Tolerance `yaml:"tolerance" eg:"{abs: 1}" default:"(the manifest's)" doc:"Of an output: its own tolerance, in place of the manifest's."`

	Infinities bool `yaml:"infinities" eg:"true" default:"false" doc:"The problem allows ±Inf in this input. If the policy names the distribution infinite, that distribution puts some into the input."`

	// ScaleOf names the argument whose scales this one receives; most have none.
	ScaleOf string `yaml:"-"`
}

// Quantize says how an array's real values become its narrow format: per group
// the largest magnitude over the format's largest value (448 for e4m3).
type Quantize struct {
	Per   []string `yaml:"per" eg:"[H]" default:"(one scale for the whole array)" doc:"The axes that index the groups."`
	Scale string   `yaml:"scale" required:"true" eg:"q_scale" doc:"The argument that receives the scales."`
}

const maxAxes = 8

// ValidateStrict checks one argument; the manifest checks the arguments together.
func (a *Argument) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkIdentifier(n.Child("name"), a.Name)
	}
	if !n.Clean() {
		return
	}
	switch a.Access {
	case Scalar:
		a.validateScalar(n)
	case Struct, Absent:
		a.validateStruct(n)
	default:
		a.validateArray(n)
	}
}

// array reports whether the argument is memory that the kernel reads or writes.
func (a *Argument) array() bool { return a.Access == In || a.Access == Out || a.Access == InOut }

// refuseFields reports fields that a kind of argument does not have.
func refuseFields(n *strict.Node, why string, fields ...string) {
	for _, field := range fields {
		if n.Has(field) {
			n.Child(field).Errorf("%s", why)
		}
	}
}

func (a *Argument) validateStruct(n *strict.Node) {
	refuseFields(n, fmt.Sprintf("%s has none (delete it, or write another access)", a.Access), "dtype", "shape", "init", "quantize", "infinities", "tensor_map", "value", "vector", "setting", "tolerance")
	switch {
	case a.Access == Absent:
		refuseFields(n, "absent has none (delete it, or write access: struct)", "fields")
	case len(a.Fields) == 0:
		n.Child("fields").Errorf("is required for a struct (write e.g. fields: [{name: scale, dtype: f32, value: 1/sqrt(D)}])")
	case len(a.Fields) > maxFields:
		n.Child("fields").Errorf("has %d fields (write at most %d)", len(a.Fields), maxFields)
	default:
		strict.Each(n.Child("fields"), a.Fields, func(at *strict.Node, f *Field) { f.validateMember(at) })
	}
}

func (a *Argument) validateScalar(n *strict.Node) {
	refuseFields(n, "a scalar has none (delete it, or write access: in)", "shape", "init", "quantize", "infinities", "tensor_map", "tolerance")
	refuseFields(n, "a scalar has none (delete it, or write access: struct)", "fields")
	switch {
	case n.Has("setting") && (n.Has("value") || n.Has("vector")):
		n.Child("setting").Errorf("is set beside value or vector, which the reference sees (delete one)")
	case n.Has("vector") && n.Has("value"):
		n.Child("value").Errorf("is set together with vector (delete one)")
	case n.Has("vector"):
		checkLanes(n.Child("vector"), len(a.Vector))
	case a.scalar() == nil:
		n.Child("value").Errorf("is required for a scalar (write e.g. value: B)")
	}
	a.requireDType(n)
	if a.DType != "" {
		checkByValue(n, a.DType)
	}
}

func (a *Argument) requireDType(n *strict.Node) {
	if a.DType == "" {
		n.Child("dtype").Errorf("is required (write e.g. dtype: f32)")
	}
}

func (a *Argument) validateArray(n *strict.Node) {
	refuseFields(n, "an array has none (delete it, or write access: scalar)", "value", "vector", "setting")
	switch {
	case len(a.Shape) == 0:
		n.Child("shape").Errorf("is required for an array (write e.g. shape: [B, H, S, D])")
	case len(a.Shape) > maxAxes:
		n.Child("shape").Errorf("has %d axes (write at most %d)", len(a.Shape), maxAxes)
	}
	if a.Access == In {
		refuseFields(n, "an input is not compared (delete it, or write access: inout)", "tolerance")
	}
	if n.Has("fields") {
		a.validateElements(n)
		return
	}
	if a.requireDType(n); a.DType == "" {
		return
	}
	if a.DType.Packed() {
		refuseFields(n, "a packed format has none (delete it)", "tensor_map")
	}
	a.validateInit(n)
	a.validateMap(n)
	a.validateInfinities(n)
	if a.Quantize == nil {
		return
	}
	if a.Access != In {
		n.Child("quantize").Errorf("only an input can be quantised (delete it, or write access: in)")
	}
	if !slices.Contains(quantizedDTypes, a.DType) {
		n.Child("dtype").Errorf("%q is no format to quantise to (write one of %s)", a.DType, strict.JoinWords(quantizedDTypes))
	}
}

// validateInit checks how an array is filled. Scales are filled from the array that they belong to,
// and are f32.
func (a *Argument) validateInit(n *strict.Node) {
	at := n.Child("init")
	switch given := n.Has("init"); {
	case a.Access == Out && given:
		at.Errorf("an output is poisoned before every launch (delete it, or write access: inout)")
	case a.Access == Out:
	case given:
		a.Init.validate(at, a.DType, len(a.Shape), a.Quantize != nil)
	default:
		a.Init.Draw = ByPolicy
		if a.Quantize == nil {
			checkIndex(at, a.DType)
		}
	}
}

// GroupAxes are the axes that index the groups of a quantised array,
// ascending.
func (a *Argument) GroupAxes() []int {
	if a.Quantize == nil {
		return nil
	}
	var axes []int
	for i := range a.Shape {
		if name, ok := a.Shape[i].bare(); ok && slices.Contains(a.Quantize.Per, name) {
			axes = append(axes, i)
		}
	}
	return axes
}
