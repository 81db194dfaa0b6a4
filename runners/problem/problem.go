// Package problem turns a manifest, a shape and a seed into the bytes that a
// kernel is launched on and the real numbers that its reference is computed
// from. It runs nothing.
package problem

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Problem is one kernel's arguments for one shape, seed and distribution.
type Problem struct {
	Shape kernels.Shape
	Args  []Arg // in the order of the manifest
}

// An Arg is one argument.
type Arg struct {
	Name     string
	DType    tensor.DType
	Access   kernels.Access
	Elements int    // 1 for a scalar
	Bytes    []byte // what the kernel is given; nil for an array that it only writes
	IsScale  bool   // holds the scales of another argument, which the reference does not see

	// Real is what the bytes mean, scales applied; Original is what was drawn,
	// before it was quantised. They are the same slice where nothing was.
	Real, Original []float64
}

// Size is the argument's length in bytes.
func (a Arg) Size() int { return a.Elements * a.DType.Size() }

// Array tells an array from a scalar.
func (a Arg) Array() bool { return a.Access != kernels.Scalar }

// Reads and Writes tell what the kernel may do with an array.
func (a Arg) Reads() bool  { return a.Access == kernels.In || a.Access == kernels.InOut }
func (a Arg) Writes() bool { return a.Access == kernels.Out || a.Access == kernels.InOut }

// New draws the arguments. The same manifest, shape, distribution and seed give
// the same bytes on every machine.
func New(m *kernels.Manifest, shape kernels.Shape, toggles map[string]int, dist tensor.Distribution, seed uint64) (*Problem, error) {
	p := &Problem{Shape: shape}
	scales := map[string][]float64{}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		arg, err := p.draw(m, a, toggles, dist, seed, scales)
		if err != nil {
			return nil, fmt.Errorf("preparing argument %s of %s for %s: %w", a.Name, m.Name, shape, err)
		}
		p.Args = append(p.Args, arg)
	}
	// Scales are known only once their argument was drawn, which may stand behind them.
	for i, a := range m.Arguments {
		if a.ScaleOf == "" {
			continue
		}
		arg := &p.Args[i]
		arg.IsScale = true
		arg.Real = scales[a.Name]
		if len(arg.Real) != arg.Elements {
			return nil, fmt.Errorf("preparing argument %s of %s: it holds %d scales, but %s has %d groups", a.Name, m.Name, arg.Elements, a.ScaleOf, len(arg.Real))
		}
		arg.Original = arg.Real
		tensor.Encode(arg.DType, arg.Bytes, arg.Real)
	}
	return p, nil
}

func (p *Problem) draw(m *kernels.Manifest, a *kernels.Argument, toggles map[string]int, dist tensor.Distribution, seed uint64, scales map[string][]float64) (Arg, error) {
	arg := Arg{Name: a.Name, DType: tensor.DType(a.DType), Access: a.Access, Elements: 1}
	if a.Access == kernels.Scalar {
		value, err := m.ScalarValue(a, p.Shape.Dims, toggles)
		if err != nil {
			return arg, err
		}
		arg.Bytes = make([]byte, arg.DType.Size())
		arg.Real = []float64{value}
		tensor.Encode(arg.DType, arg.Bytes, arg.Real)
		return arg, nil
	}
	shape, err := m.ShapeOf(a, p.Shape.Dims, toggles)
	if err != nil {
		return arg, err
	}
	if arg.Elements, err = tensor.Elements(shape); err != nil {
		return arg, err
	}
	if !arg.Reads() {
		return arg, nil
	}
	arg.Bytes = make([]byte, arg.Size())
	if a.ScaleOf != "" {
		return arg, nil
	}
	if a.Init != kernels.ByPolicy && a.Init != "" {
		dist = tensor.Distribution(a.Init)
	}
	values := make([]float64, arg.Elements)
	if a.Quantize == nil {
		tensor.FillAs(arg.DType, values, dist, seed, a.Name, shape)
		tensor.Encode(arg.DType, arg.Bytes, values)
		arg.Real = make([]float64, arg.Elements)
		tensor.Decode(arg.DType, arg.Real, arg.Bytes)
		arg.Original = arg.Real
		return arg, nil
	}
	tensor.Fill(values, dist, seed, a.Name, shape)
	q, err := tensor.Quantize(arg.DType, values, shape, a.GroupAxes())
	if err != nil {
		return arg, err
	}
	arg.Bytes, arg.Real, arg.Original = q.Data, q.Dequantized, values
	scales[a.Quantize.Scale] = q.Scales
	return arg, nil
}

// ReferenceArgs is the arguments as the reference sees them: real numbers in
// float64, no scales, scalars as they are. With original, arrays are what they
// were before quantisation.
func (p *Problem) ReferenceArgs(original bool) []Arg {
	var args []Arg
	for _, a := range p.Args {
		if a.IsScale {
			continue
		}
		if a.Array() {
			ref := Arg{Name: a.Name, DType: tensor.F64, Access: a.Access, Elements: a.Elements}
			if a.Reads() {
				values := a.Real
				if original {
					values = a.Original
				}
				ref.Bytes = make([]byte, 8*len(values))
				for i, v := range values {
					binary.LittleEndian.PutUint64(ref.Bytes[8*i:], math.Float64bits(v))
				}
			}
			a = ref
		}
		args = append(args, a)
	}
	return args
}
