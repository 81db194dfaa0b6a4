package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Init says how an input is filled: by the policy's distributions, always by one of them, within
// bounds, or with ordered values. It is written as a word (zero), as bounds (0..V-1), or as a
// mapping.
type Init struct {
	Draw      Draw    `yaml:"draw" eg:"uniform" default:"(distribution; uniform with a range)" doc:"Kind of values: see the table above."`
	Range     *Bounds `yaml:"range" eg:"0..V-1" default:"(the format's)" doc:"Smallest and largest value, both included. Values that a draw gives outside of the range are clamped to it."`
	Scale     *Expr   `yaml:"scale" eg:"0.02" default:"(1)" doc:"Factor on the values that a distribution gives."`
	Total     *Expr   `yaml:"total" eg:"T" default:"(required for offsets)" doc:"offsets: the last offset."`
	Lengths   *Bounds `yaml:"lengths" eg:"1..S" default:"(any)" doc:"offsets: the allowed differences between two neighbouring offsets."`
	Share     *Expr   `yaml:"share" eg:"0.5" default:"(0.25)" doc:"mask: the share of the elements that are masked, 0 to 1."`
	WholeRows bool    `yaml:"whole_rows" eg:"true" default:"false" doc:"mask: allow rows in which all elements are masked."`
	Each      Each    `yaml:"each" eg:"row" default:"(array)" doc:"offsets, permutation, sorted: whether the property holds for the whole array, or separately for each row (the last axis)."`
}

// A Draw is a distribution, or a way to draw values that depend on each other.
type Draw string

const (
	ByPolicy    Draw = "distribution" // as the policy says
	Any         Draw = "any"          // every integer of the format
	Offsets     Draw = "offsets"      // 0 first, total last, never falling
	Permutation Draw = "permutation"  // different values in any order
	Sorted      Draw = "sorted"       // ascending values, some of them equal
	Mask        Draw = "mask"         // −Inf in a share of the elements, else 0; of an integer 0, else 1
	Causal      Draw = "causal"       // the same right of the diagonal
)

// orders are what an argument may ask for in addition to the distributions; kernels/REFERENCE.md
// explains each. New ones go to the end: device code knows them by their index behind the
// distributions.
var orders = []distribution.Kind{distribution.Kind(Any), distribution.Kind(Offsets), distribution.Kind(Permutation), distribution.Kind(Sorted), distribution.Kind(Mask), distribution.Kind(Causal)}

// draws lists every word that an init may be.
func draws() []Draw {
	return append([]Draw{ByPolicy}, mapped(Drawings(), func(d distribution.Kind) Draw { return Draw(d) })...)
}

// Drawings lists everything that arrays are filled with, in the order that device code knows.
func Drawings() []distribution.Kind {
	return append(distribution.All(), orders...)
}

func (d *Draw) UnmarshalStrict(n *strict.Node) { strict.Word(n, d, draws()) }
func (d *Draw) JSONSchema() map[string]any     { return strict.WordSchema(draws()) }

// An Each is what an order is of.
type Each string

const (
	EachArray Each = "array"
	EachRow   Each = "row"
)

var eaches = []Each{EachArray, EachRow}

func (e *Each) UnmarshalStrict(n *strict.Node) { strict.Word(n, e, eaches) }
func (e *Each) JSONSchema() map[string]any     { return strict.WordSchema(eaches) }

// Bounds are two expressions with .. between them.
type Bounds struct{ least, most Expr }

// String is the bounds as they are written.
func (b Bounds) String() string { return b.least.text + ".." + b.most.text }

const boundsExample = "write the least and the largest value, e.g. 0..V-1"

func (b *Bounds) UnmarshalStrict(n *strict.Node) {
	text, _ := n.Text()
	least, most, ok := strings.Cut(text, "..")
	if !ok {
		n.Errorf("%q are no bounds (%s)", text, boundsExample)
		return
	}
	b.least.read(n, least)
	b.most.read(n, most)
}

func (b *Bounds) JSONSchema() map[string]any {
	return map[string]any{"title": "bounds", "type": "string", "pattern": `^.+\.\..+$`, "maxLength": 2*maxExprLength + 2}
}

// UnmarshalStrict also reads the short forms: init: zero, and init: 0..V-1.
func (i *Init) UnmarshalStrict(n *strict.Node) {
	text, scalar := n.Text()
	switch {
	case scalar && strings.Contains(text, ".."):
		i.Range = &Bounds{}
		n.Decode(i.Range)
	case scalar:
		n.Decode(&i.Draw)
	default:
		type fields Init // without this method
		n.Decode((*fields)(i))
	}
	if i.Draw == "" {
		i.Draw = ByPolicy
		if i.Range != nil {
			i.Draw = Draw(distribution.Uniform)
		}
	}
	if i.Each == EachArray {
		i.Each = ""
	}
}

func (i *Init) JSONSchema() map[string]any {
	type fields Init
	return map[string]any{"title": "draw, bounds (0..V-1), or a mapping", "anyOf": []any{strict.WordSchema(draws()), new(Bounds).JSONSchema(), schemaOf(fields{})}}
}

// ordered reports whether the values depend on each other.
func (i *Init) ordered() bool { return i.Draw == Offsets || i.Draw == Permutation || i.Draw == Sorted }

func (i *Init) masking() bool { return i.Draw == Mask || i.Draw == Causal }

// plain reports whether the draw is a distribution.
func (i *Init) plain() bool { return !i.ordered() && !i.masking() && i.Draw != Any }

// validate checks an init against the format and the number of axes of its array.
func (i *Init) validate(at *strict.Node, d DType, axes int, quantized bool) {
	ofDraw := func(field string, set, read bool, draws string) {
		if set && !read {
			at.Child(field).Errorf("%s does not read it (delete it, or write draw: %s)", i.Draw, draws)
		}
	}
	ofDraw("total", i.Total != nil, i.Draw == Offsets, "offsets")
	ofDraw("lengths", i.Lengths != nil, i.Draw == Offsets, "offsets")
	ofDraw("share", i.Share != nil, i.Draw == Mask, "mask")
	ofDraw("whole_rows", i.WholeRows, i.Draw == Mask, "mask")
	ofDraw("each", i.Each != "", i.ordered(), "sorted")
	ofDraw("scale", i.Scale != nil, i.plain() && !(i.Draw == Draw(distribution.Uniform) && i.Range != nil), "distribution")
	ofDraw("range", i.Range != nil, i.plain() || i.Draw == Permutation || i.Draw == Sorted, "uniform")
	whole := !d.Float() && !quantized
	switch {
	case quantized && !i.plain():
		at.Errorf("a quantised array is drawn as real numbers (write a distribution, or delete quantize)")
	case i.Draw == Any && !whole:
		at.Errorf("any is of integers (write e.g. init: {range: -1..1})")
	case (i.Draw == Offsets || i.Draw == Permutation) && !whole:
		at.Errorf("%s are whole numbers, and %s is none (write an integer dtype)", i.Draw, d)
	case i.Draw == Offsets && i.Total == nil:
		at.Child("total").Errorf("is required for offsets (write e.g. init: {draw: offsets, total: T})")
	case i.Draw == Sorted && whole && i.Range == nil:
		at.Child("range").Errorf("is required for sorted integers (write e.g. init: {draw: sorted, range: 0..V-1})")
	case i.masking() && !whole && !slices.Contains(infiniteDTypes, d):
		at.Errorf("%s keeps no infinities (write one of %s, or an integer)", d, strict.JoinWords(infiniteDTypes))
	case i.Draw == Causal && axes < 2:
		at.Errorf("a causal mask has rows and columns (give it a shape of two axes or more)")
	}
}

// indexes are the formats that a kernel may use to index with.
var indexes = []DType{I8, U8, I16, U16, I32, U32, I64, U64}

// checkIndex requires bounds for integers. A manifest does not show whether the kernel indexes with
// them; a kernel that does would read anywhere if the policy drew them. So the author must say.
func checkIndex(at *strict.Node, d DType) {
	if slices.Contains(indexes, d) {
		at.Errorf("is required for %s, which the kernel may index with (write the bounds it relies on, such as init: 0..V-1; init: any for every value of %[1]s; or init: distribution for the policy's)", d)
	}
}

// A Filling is an init in numbers.
type Filling struct {
	Draw        distribution.Kind // "" where the policy decides
	Bounded     bool
	Least, Most float64 // of the values, where they are bounded
	Scale       float64
	Total       float64    // of offsets
	Lengths     [2]float64 // of offsets: between two of them
	Share       float64    // of a mask
	WholeRows   bool
	Rows        bool // every row has a separate order
}

// Exact reports whether the values are integers from the start, not rounded values of a
// distribution.
func (f Filling) Exact() bool {
	return f.Draw == distribution.Uniform && f.Bounded || slices.Contains(orders, f.Draw)
}

// fill computes an init for an array of a format and a shape. Quantised arrays are drawn as f32.
func (i *Init) fill(d DType, shape []int, env Env) (Filling, error) {
	f := Filling{Draw: distribution.Kind(i.Draw), Scale: 1, Share: 0.25, WholeRows: i.WholeRows, Rows: i.Each == EachRow}
	var err error
	limits, whole := wholeRanges[d]
	switch {
	case i.Draw == ByPolicy:
		f.Draw = ""
	case i.Draw == Any:
		f.Draw, f.Bounded, f.Least, f.Most = distribution.Uniform, true, float64(limits[0]), float64(limits[1])
	}
	if i.Range != nil {
		if f.Least, f.Most, err = i.Range.as(d, env); err != nil {
			return f, err
		}
		f.Bounded = true
	} else if i.Draw == Sorted {
		f.Bounded, f.Least, f.Most = true, -1, 1
	}
	if i.Scale != nil {
		if f.Scale, err = i.Scale.eval(env); err != nil {
			return f, err
		}
		if f.Scale == 0 {
			return f, &fault{i.Scale, "is 0", "write draw: zero"}
		}
	}
	if i.Share != nil {
		if f.Share, err = i.Share.eval(env); err != nil {
			return f, err
		}
		if f.Share < 0 || f.Share > 1 {
			return f, &fault{i.Share, fmt.Sprintf("is %v", f.Share), "write a share from 0 to 1"}
		}
	}
	if !whole || !i.ordered() {
		return f, nil
	}
	return f, i.order(&f, d, shape, env)
}

// order computes what only ordered integers have.
func (i *Init) order(f *Filling, d DType, shape []int, env Env) error {
	places := int(product(shape))
	if f.Rows && len(shape) > 0 {
		places = shape[len(shape)-1]
	}
	limits := wholeRanges[d]
	switch i.Draw {
	case Permutation:
		if !f.Bounded {
			f.Bounded, f.Least, f.Most = true, 0, float64(places-1)
		}
		switch values := f.Most - f.Least + 1; {
		case i.Range == nil && f.Most > float64(limits[1]):
			return &fault{nil, fmt.Sprintf("has %d elements, more than %s has values", places, d), "write a wider dtype"}
		case values < float64(places):
			return &fault{&i.Range.most, fmt.Sprintf("leaves %.0f values for %d elements that all differ", values, places), "widen the range, or write each: row"}
		}
	case Offsets:
		total, err := i.Total.within(env, 0, limits[1])
		if err != nil {
			return err
		}
		steps := float64(places - 1)
		f.Total, f.Lengths = float64(total), [2]float64{0, float64(total)}
		if i.Lengths != nil {
			if f.Lengths[0], f.Lengths[1], err = i.Lengths.as(U64, env); err != nil {
				return err
			}
		}
		if steps < 1 || f.Lengths[0]*steps > f.Total || f.Lengths[1]*steps < f.Total {
			return &fault{i.Total, fmt.Sprintf("is %d, and %.0f lengths from %.0f to %.0f do not add up to it", total, steps, f.Lengths[0], f.Lengths[1]), "offsets are one more than their lengths: change shape, total or lengths"}
		}
	}
	return nil
}

// as returns the bounds in a format.
func (b *Bounds) as(d DType, env Env) (least, most float64, err error) {
	if least, err = b.least.as(d, env); err != nil {
		return least, most, err
	}
	if most, err = b.most.as(d, env); err != nil {
		return least, most, err
	}
	if most < least {
		return least, most, &fault{&b.most, fmt.Sprintf("is %v, less than %v", most, least), boundsExample}
	}
	return least, most, nil
}

// maxFloatWhole is the largest number up to which every whole one is a float32, as a reference on the device sees it.
const maxFloatWhole = 1 << 24

// FillingOf returns how an input is filled for one problem size.
func (m *Manifest) FillingOf(a *Argument, dims Dims, toggles map[string]int) (Filling, error) {
	shape, err := m.ShapeOf(a, dims, toggles)
	if err != nil {
		return Filling{}, err
	}
	d := a.DType
	if a.Quantize != nil {
		d = F32
	}
	return m.filling(&a.Init, d, shape, m.Env(dims, toggles))
}

func (m *Manifest) filling(i *Init, d DType, shape []int, env Env) (Filling, error) {
	f, err := i.fill(d, shape, env)
	if err != nil || d.Float() || !m.ReferenceOnDevice() {
		return f, err
	}
	if largest := max(-f.Least, f.Most, f.Total); largest > maxFloatWhole && i.Draw != Any {
		e := i.Total
		if i.Range != nil {
			e = &i.Range.most
		}
		return f, &fault{e, fmt.Sprintf("makes values up to %.0f", largest), "keep them within 2^24: a reference on the device sees floats"}
	}
	return f, nil
}
