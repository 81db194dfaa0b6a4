package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
)

// A Recording holds the inputs of one shape that a file has. Seed 0 gives them as they are; every other seed gives inputs
// that differ from them, and from those of all other seeds, as the manifest's vary says.
//
// Its errors name tensors and positions. They never quote a value: recorded data is private.
type Recording struct {
	kind    distribution.Kind
	shape   string
	vary    manifest.Vary
	tensors map[string]*recorded
}

// recorded is one input.
type recorded struct {
	values      []float64
	axes        []string // dims that are shuffled, by axis; "" for an axis that is not
	noise       float64  // 0 for one that is kept
	least, most float64  // of its format, or of the bounds that the manifest gives
}

// Recordings are those of a kernel, by their kinds.
type Recordings map[distribution.Kind]*Recording

// formats are the names of the formats in a file.
var formats = map[manifest.DType]safetensors.DType{
	manifest.E4M3: "F8_E4M3", manifest.E5M2: "F8_E5M2", manifest.F16: "F16", manifest.BF16: "BF16", manifest.F32: "F32", manifest.F64: "F64",
	manifest.I8: "I8", manifest.U8: "U8", manifest.I16: "I16", manifest.U16: "U16", manifest.I32: "I32", manifest.U32: "U32",
	manifest.I64: "I64", manifest.U64: "U64", manifest.Bool: "BOOL",
}

// reals are the formats in which an array may be recorded that is quantised after it was drawn.
var reals = []manifest.DType{manifest.F32, manifest.F16, manifest.BF16, manifest.F64}

// NewRecording checks the content of a file against the manifest.
func NewRecording(m *manifest.Manifest, r manifest.Recording, data []byte) (*Recording, error) {
	made, err := newRecording(m, r, data)
	if err != nil {
		return nil, fmt.Errorf("the recording %s (%s): %w", r.Name, r.File, err)
	}
	return made, nil
}

func newRecording(m *manifest.Manifest, r manifest.Recording, data []byte) (*Recording, error) {
	file, err := safetensors.Parse(data)
	if err != nil {
		return nil, err
	}
	shape, ok := m.Shape(r.Shape)
	if !ok {
		return nil, fmt.Errorf("%s has no shape %s", m.Name, r.Shape)
	}
	p, err := Outline(m, shape, m.ToggleValues(m.DefaultVariant))
	if err != nil {
		return nil, err
	}
	made := &Recording{kind: distribution.RecordedAs(r.Name), shape: shape.Dims.String(), tensors: map[string]*recorded{}}
	if r.Vary != nil {
		made.vary = *r.Vary
	}
	for _, t := range file.Tensors {
		i := slices.IndexFunc(p.Args, func(a Arg) bool { return a.Name == t.Name })
		if i < 0 {
			return nil, fmt.Errorf("tensor %q has the name of no argument (rename it, or record without it)", t.Name)
		}
		switch a := &p.Args[i]; {
		case a.Access == manifest.Scalar:
			err = checkScalar(a, t)
		case !a.Array() || !a.Reads():
			// The recorded call wrote it: nobody reads it.
		case a.IsScale:
			err = fmt.Errorf("tensor %q holds scales, which follow from what they scale (record that before it is quantised, and not the scales)", t.Name)
		default:
			made.tensors[a.Name], err = made.take(m, a, t)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := checkMetadata(p, file.Metadata); err != nil {
		return nil, err
	}
	for _, a := range p.Args {
		if a.Array() && a.Reads() && !a.IsScale && made.tensors[a.Name] == nil && r.Missing != manifest.MissingDraw {
			return nil, fmt.Errorf("it has no tensor for the input %s (record it, or write missing: draw)", a.Name)
		}
	}
	return made, nil
}

// take reads one input.
func (r *Recording) take(m *manifest.Manifest, a *Arg, t safetensors.Tensor) (*recorded, error) {
	d, quantized := a.DType, a.Scales >= 0
	if quantized {
		i := slices.IndexFunc(reals, func(real manifest.DType) bool { return formats[real] == t.DType })
		if i < 0 {
			return nil, fmt.Errorf("tensor %q is %s, and the judge quantises it to %s (record it before it is quantised, as F32, F16, BF16 or F64)", t.Name, t.DType, a.DType)
		}
		d = reals[i]
	}
	switch {
	case a.Members != nil || formats[d] == "":
		return nil, fmt.Errorf("tensor %q is for an array of %s, which no file holds (write missing: draw, and leave it out)", t.Name, map[bool]string{true: "structs", false: string(d)}[a.Members != nil])
	case formats[d] != t.DType:
		return nil, fmt.Errorf("tensor %q is %s, and the argument is %s (record it as %s)", t.Name, t.DType, d, formats[d])
	case !slices.Equal(t.Shape, a.Shape):
		return nil, fmt.Errorf("tensor %q has the shape %v, and at this shape the argument has %v", t.Name, t.Shape, a.Shape)
	}
	in := &recorded{values: make([]float64, a.Elements), axes: m.ShuffledAxes(&r.vary, a.Name)}
	Decode(d, in.values, t.Data)
	in.least, in.most = -largest(d), largest(d)
	if quantized {
		in.least, in.most = -math.MaxFloat32, math.MaxFloat32
	}
	if a.Filling.Bounded {
		in.least, in.most = a.Filling.Least, a.Filling.Most
	}
	if d.Float() && !slices.Contains(r.vary.Keep, a.Name) {
		in.noise = r.vary.Noise
	}
	return in, in.check(a, t.Name)
}

// check refuses values that the problem does not allow. A kernel may index with integers, and would read anywhere.
func (in *recorded) check(a *Arg, name string) error {
	infinite := !a.Finite || a.Filling.Draw == distribution.Kind(manifest.Mask) || a.Filling.Draw == distribution.Kind(manifest.Causal)
	for i, x := range in.values {
		switch {
		case math.IsNaN(x):
			return fmt.Errorf("tensor %q has a NaN at element %d: no output can be compared (record inputs without)", name, i)
		case math.IsInf(x, 0) && !infinite:
			return fmt.Errorf("tensor %q has an infinity at element %d (write infinities: true at the argument, or record inputs without)", name, i)
		case !a.DType.Float() && a.Scales < 0 && math.Abs(x) > 1<<53:
			return fmt.Errorf("tensor %q is beyond 2^53 at element %d: not every integer of that size is kept", name, i)
		case !math.IsInf(x, 0) && (x < in.least || x > in.most):
			return fmt.Errorf("tensor %q is out of the argument's bounds at element %d, which the kernel relies on", name, i)
		}
	}
	switch f := a.Filling; f.Draw {
	case distribution.Kind(manifest.Offsets), distribution.Kind(manifest.Sorted):
		width := max(1, len(in.values))
		if f.Rows {
			width = a.Shape[len(a.Shape)-1]
		}
		for i, x := range in.values {
			first, last := i%width == 0, i%width == width-1
			if !first && x < in.values[i-1] {
				return fmt.Errorf("tensor %q falls at element %d, and init says %s", name, i, f.Draw)
			}
			if f.Draw == distribution.Kind(manifest.Offsets) && (first && x != 0 || last && x != f.Total) {
				return fmt.Errorf("tensor %q does not begin with 0 and end with the total at element %d, as init says", name, i)
			}
		}
	}
	return nil
}

// largest returns the largest finite value of a format of floats; for others no bound.
func largest(d manifest.DType) float64 {
	switch d {
	case manifest.E4M3:
		return 448
	case manifest.E5M2:
		return 57344
	case manifest.F16:
		return 65504
	case manifest.BF16:
		return 0x1.FEp127
	case manifest.F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// checkScalar compares a tensor of one element with the value that the manifest gives the scalar.
func checkScalar(a *Arg, t safetensors.Tensor) error {
	for d, name := range formats {
		if name == t.DType && len(t.Data) == d.Size() {
			var got [1]float64
			Decode(d, got[:], t.Data)
			if near(got[0], a.Real[0]) {
				return nil
			}
			return fmt.Errorf("the scalar %s was recorded with a different value than the manifest gives it at this shape", a.Name)
		}
	}
	return fmt.Errorf("tensor %q is for a scalar, and has not one element", t.Name)
}

// checkMetadata compares the scalars that the helper wrote as text.
func checkMetadata(p *Problem, metadata map[string]string) error {
	for _, a := range p.Args {
		text, ok := metadata[a.Name]
		if a.Access != manifest.Scalar || a.OfComposite || a.Setting || !ok {
			continue
		}
		var got float64
		if _, err := fmt.Sscan(text, &got); err != nil || !near(got, a.Real[0]) {
			return fmt.Errorf("the scalar %s was recorded with a different value than the manifest gives it at this shape", a.Name)
		}
	}
	return nil
}

// near allows for a value that went through float32 or a short text.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b) }

// fill writes an input of a seed.
func (r *Recording) fill(dst []float64, a *Arg, in *recorded, seed uint64) {
	copy(dst, in.values)
	if seed == 0 {
		return
	}
	if perms := r.orders(a, in, seed); perms != nil {
		index := make([]int, len(a.Shape))
		for i := range dst {
			from := 0
			for axis, n := range a.Shape {
				at := index[axis]
				if perms[axis] != nil {
					at = perms[axis][at]
				}
				from = from*n + at
			}
			dst[i] = in.values[from]
			for axis := len(index) - 1; axis >= 0; axis-- {
				if index[axis]++; index[axis] < a.Shape[axis] {
					break
				}
				index[axis] = 0
			}
		}
	}
	if in.noise == 0 {
		return
	}
	k := r.NoiseKey(*a, seed)
	for i, x := range dst {
		dst[i] = in.disturb(k, i, x)
	}
}

// disturb multiplies a value by its noise. What would leave the format, or the argument's bounds, stays within them.
func (in *recorded) disturb(k Key, i int, x float64) float64 {
	if math.IsInf(x, 0) {
		return x
	}
	factor := 1 + float64(in.noise*k.uniform(i))
	switch x *= factor; { // min and max would treat −0 as less than 0
	case x < in.least:
		x = in.least
	case x > in.most:
		x = in.most
	}
	return x
}

// orders returns the order of each axis that is shuffled; nil where none is. It is the same for all arrays.
func (r *Recording) orders(a *Arg, in *recorded, seed uint64) [][]int {
	var all [][]int
	for axis, dim := range in.axes {
		if dim == "" {
			continue
		}
		if all == nil {
			all = make([][]int, len(a.Shape))
		}
		n := a.Shape[axis]
		k := r.OrderKey(dim, n, seed)
		all[axis] = make([]int, n)
		for i := range n {
			all[axis][i] = int(k.permuted(0, uint64(i), uint64(n)))
		}
	}
	return all
}

// On says how an input comes from a recording, for a device that computes the same bits.
type On struct {
	Values      []float64
	Noise       float64
	Least, Most float64
	Shuffled    []bool // by axis
}

// On returns how an argument comes from the recording; ok is false if it is drawn at random.
func (r *Recording) On(a Arg) (on On, ok bool) {
	in := r.tensors[a.Name]
	if in == nil || a.Members != nil {
		return On{}, false
	}
	on = On{Values: in.values, Noise: in.noise, Least: in.least, Most: in.most, Shuffled: make([]bool, len(a.Shape))}
	for axis := range in.axes {
		on.Shuffled[axis] = in.axes[axis] != ""
	}
	return on, true
}

// NoiseKey returns the key of an argument's noise.
func (r *Recording) NoiseKey(a Arg, seed uint64) Key { return KeyOf(r.kind, seed, a.Name, a.Shape) }

// OrderKeys returns the keys of the orders of an argument's axes; those of axes that are not shuffled are zero.
func (r *Recording) OrderKeys(a Arg, seed uint64) []Key {
	keys := make([]Key, len(a.Shape))
	for axis, dim := range r.tensors[a.Name].axes {
		if dim != "" {
			keys[axis] = r.OrderKey(dim, a.Shape[axis], seed)
		}
	}
	return keys
}

// OrderKey returns the key of the order of a dim's entries.
func (r *Recording) OrderKey(dim string, n int, seed uint64) Key {
	return KeyOf(r.kind, seed, "order of "+dim, []int{n})
}

// Problem draws the arguments as NewProblem does. Inputs of a recording come from it; those that it does not have are
// drawn as normal ones.
func (all Recordings) Problem(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int, dist distribution.Kind, seed uint64) (*Problem, error) {
	if !dist.FromRecording() {
		return NewProblem(m, shape, toggles, dist, seed)
	}
	r := all[dist]
	if r == nil {
		return nil, fmt.Errorf("there is no recording for %s inputs", dist)
	}
	if got := shape.Dims.String(); got != r.shape {
		return nil, fmt.Errorf("%s inputs are of %s, and not of %s", dist, r.shape, got)
	}
	return newProblem(m, shape, toggles, distribution.Normal, seed, r)
}
