package kernels

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Access is what the kernel does with an argument.
type Access string

const (
	In     Access = "in"
	Out    Access = "out"
	InOut  Access = "inout"
	Scalar Access = "scalar" // passed by value
)

var accesses = []Access{In, Out, InOut, Scalar}

func (a *Access) UnmarshalStrict(n *strict.Node) { strict.Word(n, a, accesses) }
func (a *Access) JSONSchema() map[string]any     { return strict.WordSchema(accesses) }

// An Init is how an input array is filled: by the distributions that the
// policy names, or always by one of them.
type Init string

// ByPolicy leaves the distribution to the policy.
const ByPolicy Init = "distribution"

func inits() []Init {
	words := []Init{ByPolicy}
	for _, d := range Distributions() {
		words = append(words, Init(d))
	}
	return words
}

func (i *Init) UnmarshalStrict(n *strict.Node) { strict.Word(n, i, inits()) }
func (i *Init) JSONSchema() map[string]any     { return strict.WordSchema(inits()) }

// An Argument is one parameter of the kernel function.
type Argument struct {
	Name     string    `yaml:"name" required:"true" eg:"q" bounds:"(a C identifier)" doc:"The parameter's name."`
	DType    DType     `yaml:"dtype" required:"true" eg:"f32" doc:"Format of an element; i32, i64, f32 or f64 for a scalar."`
	Access   Access    `yaml:"access" required:"true" eg:"inout" doc:"What the kernel does with it: reads, writes, both, or scalar for a parameter by value."`
	Shape    []Expr    `yaml:"shape" eg:"[B, H, S, D]" default:"(required for an array)" bounds:"1 to 8 entries" doc:"Axes of an array, row-major, each an expression over the dims."`
	Init     Init      `yaml:"init" eg:"zero" default:"distribution" doc:"How an input is filled; distribution is as the policy says."`
	Quantize *Quantize `yaml:"quantize" eg:"{scale: q_scale}" doc:"Values are drawn as real numbers and quantised with one scale per group."`
	Value    *Expr     `yaml:"value" eg:"1/sqrt(D)" default:"(required for a scalar)" doc:"Value of a scalar."`

	TensorMap *TensorMap `yaml:"tensor_map" eg:"{box: [1, 1, 64, D]}" doc:"cuda, sm_90 and later: the array is passed as a CUtensorMap instead of a pointer."`

	Infinities bool `yaml:"infinities" eg:"true" default:"false" doc:"The problem allows ±Inf in this input: where the policy names the distribution infinite, it has some."`

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

// ValidateStrict looks at one argument alone; what it has to do with the
// others is the manifest's question.
func (a *Argument) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkIdentifier(n.Child("name"), a.Name)
	}
	if !n.Clean() {
		return
	}
	if a.Access == Scalar {
		a.validateScalar(n)
	} else {
		a.validateArray(n)
	}
}

func (a *Argument) validateScalar(n *strict.Node) {
	for _, field := range []string{"shape", "init", "quantize", "tensor_map", "infinities"} {
		if n.Has(field) {
			n.Child(field).Errorf("a scalar has none (delete it, or write access: in)")
		}
	}
	if a.Value == nil {
		n.Child("value").Errorf("is required for a scalar (write e.g. value: B)")
	}
	if !slices.Contains(scalarDTypes, a.DType) {
		n.Child("dtype").Errorf("%q is no format of a scalar (write one of %s)", a.DType, strict.JoinWords(scalarDTypes))
	}
}

func (a *Argument) validateArray(n *strict.Node) {
	if a.Value != nil {
		n.Child("value").Errorf("an array has none (delete it, or write access: scalar)")
	}
	switch {
	case len(a.Shape) == 0:
		n.Child("shape").Errorf("is required for an array (write e.g. shape: [B, H, S, D])")
	case len(a.Shape) > maxAxes:
		n.Child("shape").Errorf("has %d axes (write at most %d)", len(a.Shape), maxAxes)
	}
	if a.Access == Out && a.Init != "" {
		n.Child("init").Errorf("an output is poisoned before every launch (delete it, or write access: inout)")
	}
	if a.Access != Out && a.Init == "" {
		a.Init = ByPolicy
	}
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
