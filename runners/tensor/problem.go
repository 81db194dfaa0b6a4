package tensor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A Problem is one kernel's arguments for one shape, seed and distribution.
type Problem struct {
	Shape manifest.Shape
	Args  []Arg // in the manifest's order, followed by the parts of structs and vectors
	dims  []Arg // the dims that the reference asks for, as scalars
}

// An Arg is one argument.
type Arg struct {
	Name     string
	DType    manifest.DType
	Access   manifest.Access
	Shape    []int // nil for a scalar
	Elements int   // 1 for a scalar
	// Bytes is what the kernel receives. It is nil for an array that the kernel only writes, or
	// that was not drawn.
	Bytes   []byte
	IsScale bool // holds the scales of another argument; the reference does not get it

	// A struct or a vector is assembled from other arguments: the arrays that it points to, and the
	// scalars in it. Those are inside, and are not parameters themselves.
	Parts       []Part
	Extent      int // bytes of all parts, and the padding between them
	Align       int
	Inside      bool
	OfComposite bool // a scalar that is in the list only as part of a struct
	Setting     bool // a scalar that only the kernel receives

	// An array of structs has members: arrays that are drawn and that the reference sees,
	// interleaved in the elements. Each element has Count values of a member, at Offset from its
	// start; elements are Pitch apart.
	Members              []Arg
	Offset, Count, Pitch int

	Filling manifest.Filling // how an input is drawn
	Finite  bool             // the problem allows no infinity in it
	// Scales is the index of the argument that holds its scales; -1 if it is not quantised.
	Scales int
	Groups Grouping // of the elements that share a scale

	// Real holds the values that the bytes represent, with scales applied. Original holds the drawn
	// values before quantisation. They are the same slice if nothing was quantised.
	Real, Original []float64
}

// A Part says where an argument lies in a struct.
type Part struct {
	Offset  int
	Arg     int    // -1 for a null pointer, and for a pointer to scratch
	Pointer string // name of a pointer's target; "" for a null pointer
	// TensorMap means that the struct has a tensor map of the array there, which the side encodes.
	TensorMap bool
}

// Size returns the argument's length in bytes.
func (a Arg) Size() int {
	if a.DType == "" {
		return a.Extent // a struct, or an array of structs; 0 for a null pointer
	}
	return a.DType.Bytes(a.Elements)
}

// Array reports whether the argument is an array.
func (a Arg) Array() bool {
	return a.Access == manifest.In || a.Access == manifest.Out || a.Access == manifest.InOut || a.Access == manifest.Scratched
}

// Reads and Writes report what the kernel may do with an array.
func (a Arg) Reads() bool { return a.Access == manifest.In || a.Access == manifest.InOut }
func (a Arg) Writes() bool {
	return a.Access == manifest.Out || a.Access == manifest.InOut || a.Access == manifest.Scratched
}

// Outline returns the problem before anything is drawn: scalars have their bytes, arrays their
// sizes.
func Outline(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int) (*Problem, error) {
	p := &Problem{Shape: shape}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		arg, err := outline(m, a, shape, toggles)
		if err != nil {
			return nil, fmt.Errorf("preparing argument %s of %s for %s: %w", a.Name, m.Name, shape, err)
		}
		p.Args = append(p.Args, arg)
	}
	if err := p.outlineParts(m, toggles); err != nil {
		return nil, err
	}
	if m.Reference != nil {
		for _, name := range m.Reference.Dims {
			value, _ := shape.Dims.Get(name) // a dim of every shape, or the manifest was refused
			p.dims = append(p.dims, Scalar(name, manifest.DimType, float64(value)))
		}
	}
	for i, a := range m.Arguments {
		if a.ScaleOf == "" {
			continue
		}
		of := slices.IndexFunc(m.Arguments, func(o manifest.Argument) bool { return o.Name == a.ScaleOf })
		p.Args[i].IsScale = true
		p.Args[of].Scales = i
		if n := p.Args[of].Groups.Groups; n != p.Args[i].Elements {
			return nil, fmt.Errorf("preparing argument %s of %s: it holds %d scales, but %s has %d groups", a.Name, m.Name, p.Args[i].Elements, a.ScaleOf, n)
		}
	}
	return p, nil
}

func outline(m *manifest.Manifest, a *manifest.Argument, at manifest.Shape, toggles map[string]int) (Arg, error) {
	arg := Arg{Name: a.Name, DType: manifest.DType(a.DType), Access: a.Access, Elements: 1, Scales: -1}
	if _, ok := a.Composite(m); ok || a.Access == manifest.Absent {
		return arg, nil
	}
	if a.Access == manifest.Scalar {
		value, err := m.ScalarValue(a, at.Dims, toggles)
		if err != nil {
			return arg, err
		}
		arg.set(value)
		arg.Setting = a.Setting != nil
		return arg, nil
	}
	var err error
	if arg.Shape, err = m.ShapeOf(a, at.Dims, toggles); err != nil {
		return arg, err
	}
	if arg.Elements, err = Elements(arg.Shape); err != nil {
		return arg, err
	}
	if a.Structs() {
		return arg, arg.outlineMembers(m, a, at, toggles)
	}
	arg.Finite = !a.Infinities
	if arg.Reads() && a.ScaleOf == "" {
		if arg.Filling, err = m.FillingOf(a, at.Dims, toggles); err != nil {
			return arg, err
		}
	}
	if a.Quantize != nil {
		arg.Groups, err = newGrouping(arg.Shape, a.GroupAxes())
	}
	return arg, err
}

// Distribution returns how an argument is drawn if the policy asks for the given distribution.
func (a Arg) Distribution(asked distribution.Kind) distribution.Kind {
	d := cmp.Or(a.Filling.Draw, asked)
	if d == distribution.Infinite && a.Finite {
		return distribution.Edges
	}
	return d
}

// NewProblem draws the arguments. The same manifest, shape, distribution and seed give the same
// bytes on every machine.
func NewProblem(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int, dist distribution.Kind, seed uint64) (*Problem, error) {
	return newProblem(m, shape, toggles, dist, seed, nil)
}

// newProblem draws the arguments that a recording does not have.
func newProblem(m *manifest.Manifest, shape manifest.Shape, toggles map[string]int, dist distribution.Kind, seed uint64, r *Recording) (*Problem, error) {
	p, err := Outline(m, shape, toggles)
	if err != nil {
		return nil, err
	}
	for i := range p.Args {
		a := &p.Args[i]
		if !a.Array() || !a.Reads() || a.IsScale {
			continue
		}
		if err := p.draw(a, dist, seed, r); err != nil {
			return nil, fmt.Errorf("preparing argument %s of %s for %s: %w", a.Name, m.Name, shape, err)
		}
	}
	return p, nil
}

func (p *Problem) draw(a *Arg, dist distribution.Kind, seed uint64, r *Recording) error {
	if a.Members != nil {
		a.drawMembers(dist, seed)
		return nil
	}
	values := make([]float64, a.Elements)
	if r != nil && r.tensors[a.Name] != nil {
		r.fill(values, a, r.tensors[a.Name], seed)
	} else {
		a.fill(values, dist, seed)
	}
	if a.Scales < 0 {
		a.Bytes = make([]byte, a.Size())
		Encode(a.DType, a.Bytes, values)
		a.Real = make([]float64, a.Elements)
		Decode(a.DType, a.Real, a.Bytes)
		a.Original = a.Real
		return nil
	}
	q, err := Quantize(a.DType, values, a.Groups)
	if err != nil {
		return err
	}
	a.Bytes, a.Real, a.Original = q.Data, q.Dequantized, values
	scales := &p.Args[a.Scales]
	scales.Bytes = make([]byte, scales.Size())
	scales.Real, scales.Original = q.Scales, q.Scales
	Encode(scales.DType, scales.Bytes, q.Scales)
	return nil
}

// Scalar returns a scalar that is no argument of the manifest.
func Scalar(name string, d manifest.DType, value float64) Arg {
	a := Arg{Name: name, DType: d, Access: manifest.Scalar, Elements: 1, Scales: -1}
	a.set(value)
	return a
}

func (a *Arg) set(value float64) {
	a.Bytes = make([]byte, a.DType.Size())
	a.Real = []float64{value}
	Encode(a.DType, a.Bytes, a.Real)
}

// A Seen is an argument as the reference receives it.
type Seen struct {
	Arg
	Of     int // index of the kernel's argument behind it; -1 for a dim
	Member int // index of the member of an array of structs; -1 elsewhere
}

// Reference lists what the reference receives: arrays and plain scalars but no scales, each member
// of an array of structs, and the dims that it asks for.
func (p *Problem) Reference() []Seen {
	var all []Seen
	for i, a := range p.Args {
		if a.IsScale || a.OfComposite || a.Setting || a.Parts != nil || a.Access == manifest.Absent {
			continue
		}
		a.Inside = false // the reference receives it directly
		for k, member := range a.Members {
			all = append(all, Seen{member, i, k})
		}
		if a.Members == nil {
			all = append(all, Seen{a, i, -1})
		}
	}
	for _, dim := range p.dims {
		all = append(all, Seen{dim, -1, -1})
	}
	return all
}

// ReferenceArgs returns the arguments as the reference sees them: real numbers in float64, no
// scales, scalars unchanged. If original is set, arrays have their values before quantisation.
func (p *Problem) ReferenceArgs(original bool) []Arg {
	var args []Arg
	for _, a := range p.Reference() {
		if !a.Array() {
			args = append(args, a.Arg)
			continue
		}
		ref := Arg{Name: a.Name, DType: manifest.F64, Access: a.Access, Elements: a.Elements}
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
		args = append(args, ref)
	}
	return args
}

// Scratch returns the arrays that a variant's launch uses in addition to its arguments. They are
// not part of the problem: each side has its own.
func Scratch(m *manifest.Manifest, variant string, shape manifest.Shape, toggles map[string]int) ([]Arg, error) {
	var all []Arg
	for _, a := range m.ScratchOf(variant) {
		arg, err := outline(m, a, shape, toggles)
		if err != nil {
			return nil, fmt.Errorf("preparing scratch %s of %s for %s: %w", a.Name, m.Name, shape, err)
		}
		all = append(all, arg)
	}
	return all, nil
}

// notANumber holds the bits that turn any value of a format into a NaN. Formats without a NaN have
// none.
var notANumber = map[manifest.DType]uint64{
	manifest.E4M3: 0x7F, manifest.E5M2: 0x7D, manifest.F16: 0x7C01, manifest.BF16: 0x7F81, manifest.F32: 0x7F80_0001, manifest.F64: 0x7FF0_0000_0000_0001,
}

// Litter fills scratch with unpredictable values: NaNs with any payload, and any integers. If a
// kernel knew the initial value of a counter, or could distinguish it from other elements, it could
// skip the step that sets it.
func Litter(d manifest.DType, dst []byte, rng *rand.Rand) {
	var mask uint64
	size := d.Size()
	for i := 0; i < 8; i += size {
		mask |= notANumber[d] << (8 * i)
	}
	var word [8]byte
	for i := 0; i < len(dst); i += 8 {
		le.PutUint64(word[:], rng.Uint64()|mask)
		copy(dst[i:], word[:])
	}
}
