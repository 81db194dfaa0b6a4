package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Quantized is a tensor in a narrow format with the scales that undo the quantisation: value ≈
// decoded · scale.
type Quantized struct {
	Data []byte
	// Scales has one scale per group, row-major over the axes that index the groups. Each is
	// exactly a float32.
	Scales []float64
	// Dequantized is what the kernel really receives: every decoded element times its scale,
	// without rounding.
	Dequantized []float64
}

// Quantize maps values to d with one scale per group: the group's largest magnitude over the
// format's largest value (448 for e4m3, 57344 for e5m2, 127 for i8, 7 for int4, 6 for e2m1),
// computed in float32 as a GPU would, and 1 for a group of zeros. A scale is never subnormal: a
// kernel built with -ftz=true would read it as 0.
func Quantize(d manifest.DType, values []float64, g Grouping) (Quantized, error) {
	largest, err := QuantizedLimit(d)
	if err != nil {
		return Quantized{}, err
	}
	if len(values) != g.Elements {
		return Quantized{}, fmt.Errorf("quantise to %s: %d values for a grouping of %d: pass the whole tensor", d, len(values), g.Elements)
	}

	scales := make([]float64, g.Groups)
	for start, group := range g.runs() {
		for i, x := range values[start : start+g.Run] {
			if !(math.Abs(x) <= math.MaxFloat32) {
				return Quantized{}, fmt.Errorf("quantise to %s: value %d is %v, beyond float32: draw finite inputs", d, start+i, x)
			}
			scales[group] = max(scales[group], math.Abs(x))
		}
	}
	for i, absmax := range scales {
		scales[i] = scaleFor(float32(absmax), largest)
	}

	q := Quantized{
		Data:        make([]byte, d.Bytes(len(values))),
		Scales:      scales,
		Dequantized: make([]float64, len(values)),
	}
	for start, group := range g.runs() {
		for i := start; i < start+g.Run; i++ {
			q.Dequantized[i] = values[i] / scales[group]
		}
	}
	Encode(d, q.Data, q.Dequantized)
	Decode(d, q.Dequantized, q.Data)
	for start, group := range g.runs() {
		for i := start; i < start+g.Run; i++ {
			q.Dequantized[i] *= scales[group]
		}
	}
	return q, nil
}

// QuantizedLimit returns the largest value of a format that tensors are quantised to.
func QuantizedLimit(d manifest.DType) (float32, error) {
	switch d {
	case manifest.E4M3:
		return 448, nil
	case manifest.E5M2:
		return 57344, nil
	case manifest.I8:
		return math.MaxInt8, nil
	case manifest.Int4:
		return 7, nil
	case manifest.E2M1:
		return 6, nil
	}
	return 0, fmt.Errorf("quantise to %s: no such quantisation: use one of e4m3, e5m2, i8, int4, e2m1", d)
}

func scaleFor(absmax, largest float32) float64 {
	const smallestNormal = 0x1p-126
	if absmax == 0 {
		return 1
	}
	return float64(max(absmax/largest, smallestNormal))
}

// A Grouping divides a row-major tensor into runs of consecutive elements that share a group.
type Grouping struct {
	Elements, Groups, Run int
	// Lengths and Strides describe the axes over which runs are counted. A stride of 0 does not
	// change the group.
	Lengths, Strides []int
}

// newGrouping groups a shape by the axes that index the groups, in ascending order. For [B, H, S,
// D], axes [1] means one scale per head over all batches, [0, 1] one per batch and head, and none
// one scale for the whole tensor.
func newGrouping(shape, axes []int) (Grouping, error) {
	elements, err := Elements(shape)
	if err != nil {
		return Grouping{}, err
	}
	last := -1
	for _, axis := range axes {
		if axis <= last || axis >= len(shape) {
			return Grouping{}, fmt.Errorf("scale axes %v of shape %v: list axes from 0 to %d, ascending, each once", axes, shape, len(shape)-1)
		}
		last = axis
	}

	g := Grouping{Elements: elements, Groups: 1, Run: 1, Lengths: shape[:last+1], Strides: make([]int, last+1)}
	for _, axis := range slices.Backward(axes) {
		g.Strides[axis] = g.Groups
		g.Groups *= shape[axis]
	}
	for _, length := range shape[last+1:] {
		g.Run *= length
	}
	return g, nil
}

// runs yields the start of each run and the group that it belongs to.
func (g Grouping) runs() func(yield func(start, group int) bool) {
	return func(yield func(start, group int) bool) {
		index := make([]int, len(g.Lengths))
		group := 0
		for start := 0; start < g.Elements; start += g.Run {
			if !yield(start, group) {
				return
			}
			for axis := len(index) - 1; axis >= 0; axis-- {
				index[axis]++
				group += g.Strides[axis]
				if index[axis] < g.Lengths[axis] {
					break
				}
				group -= g.Strides[axis] * g.Lengths[axis]
				index[axis] = 0
			}
		}
	}
}
