package manifest

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Dim is one size of the problem, or a switch of it, such as causal: 0 or 1.
type Dim struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
}

// Dims are the sizes of one problem, in the manifest's order.
type Dims []Dim

// String is such as B=1 H=8 S=512 D=64.
func (d Dims) String() string {
	return strings.Join(mapped(d, func(dim Dim) string { return dim.Name + "=" + strconv.Itoa(dim.Value) }), " ")
}

// Names lists the dims in order.
func (d Dims) Names() []string {
	return mapped(d, func(dim Dim) string { return dim.Name })
}

// Get returns the value of one dim.
func (d Dims) Get(name string) (int, bool) {
	for _, dim := range d {
		if dim.Name == name {
			return dim.Value, true
		}
	}
	return 0, false
}

// ParseDims parses R=5,C=63 in any order, with commas or blanks between the dims; like has every
// dim.
func ParseDims(text string, like Dims) (Dims, error) {
	given := map[string]int{}
	parts := strings.Fields(text)
	if strings.Contains(text, ",") {
		parts = strings.Split(text, ",")
	}
	for _, part := range parts {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if _, known := like.Get(name); !ok || err != nil || n < 0 || !known {
			return nil, fmt.Errorf("%q is not a dim of the kernel with a size", part)
		}
		if _, twice := given[name]; twice {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		given[name] = int(n)
	}
	dims := slices.Clone(like)
	for i, d := range dims {
		n, ok := given[d.Name]
		if !ok {
			return nil, fmt.Errorf("%s is missing", d.Name)
		}
		dims[i].Value = n
	}
	return dims, nil
}

// A Shape is a problem size with a name.
type Shape struct {
	Name string `json:"name"`
	Dims Dims   `json:"dims"`
	// Warm says that launches on it find their arguments in the cache. No manifest has such a shape: a runner times it in addition,
	// and the name says so after a colon.
	Warm bool `json:"warm,omitempty"`
}

// Listed returns the name by which the manifest lists the shape.
func (s Shape) Listed() string {
	name, _, _ := strings.Cut(s.Name, ":")
	return name
}

func (s Shape) String() string { return s.Name + " (" + s.Dims.String() + ")" }

// Shapes are read from a mapping: mission: {B: 1, H: 8, S: 512, D: 64}.
type Shapes []Shape

const (
	shapesExample = "mission: {B: 1, H: 8, S: 512, D: 64}"
	maxDims       = 16
	maxDim        = math.MaxInt32
	refusedDim    = -1 // a placeholder for what was reported already
)

// secretName is how DrawSecret names its shapes.
var secretName = regexp.MustCompile(`^secret[0-9]+$`)

func (s *Shapes) UnmarshalStrict(n *strict.Node) {
	*s = nil
	eachNamed(n, shapesExample, func(p strict.Pair) {
		switch {
		case !ident.IsName(p.Key):
			p.Errorf("%q is not a name (write letters, digits, '.', '_' and '-')", p.Key)
		case p.Key == "all" || secretName.MatchString(p.Key):
			p.Errorf("%q has a special meaning in policies and reports (choose a different name)", p.Key)
		}
		shape := Shape{Name: p.Key}
		p.Value.Decode(&shape.Dims)
		if len(*s) > 0 {
			shape.Dims = matchDims(p.Value, shape.Dims, (*s)[0])
		}
		*s = append(*s, shape)
	})
}

func (s *Shapes) JSONSchema() map[string]any {
	dims := map[string]any{"type": "object", "minProperties": 1, "additionalProperties": map[string]any{"type": "integer", "minimum": 0, "maximum": maxDim}}
	return map[string]any{"title": "mapping of names to dims", "type": "object", "minProperties": 1, "additionalProperties": dims}
}

func (d *Dims) UnmarshalStrict(n *strict.Node) {
	*d = nil
	if len(n.Pairs()) > maxDims {
		n.Errorf("has %d dims (write at most %d)", len(n.Pairs()), maxDims)
		return
	}
	eachNamed(n, "{B: 1, H: 8, S: 512, D: 64}", func(p strict.Pair) {
		checkOperand(p, p.Key)
		text, _ := p.Value.Text()
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 || v > maxDim {
			p.Value.Errorf("%q is not a size (write a whole number from 0 to %d)", text, maxDim)
			v = refusedDim
		}
		*d = append(*d, Dim{p.Key, v})
	})
}

// matchDims puts a shape's dims into the first shape's order, so that columns line up in every
// report.
func matchDims(n *strict.Node, dims Dims, first Shape) Dims {
	if len(dims) == 0 || len(first.Dims) == 0 {
		return dims // reported as empty
	}
	ordered := make(Dims, 0, len(first.Dims))
	for _, name := range first.Dims.Names() {
		v, ok := dims.Get(name)
		if !ok {
			n.Errorf("has no %s, which shape %s has (write e.g. %s: 1)", name, first.Name, name)
			v = refusedDim
		}
		ordered = append(ordered, Dim{name, v})
	}
	for _, dim := range dims {
		if !slices.Contains(first.Dims.Names(), dim.Name) {
			n.Child(dim.Name).Errorf("is no dim of shape %s (all shapes have the same dims: %s)", first.Name, strings.Join(first.Dims.Names(), ", "))
		}
	}
	return ordered
}

// Env returns the dims, the toggles' defaults and, over them, the given toggles, with the numbers
// of the @triton.autotune configuration at this size.
func (m *Manifest) Env(dims Dims, toggles map[string]int) Env {
	env := m.plainEnv(dims, toggles)
	m.tuned(env, dims)
	return env
}

// plainEnv is the same without the configuration, which may depend on it.
func (m *Manifest) plainEnv(dims Dims, toggles map[string]int) Env {
	env := Env{smsName: m.smsHere()}
	for _, t := range m.Toggles {
		env[t.Name] = t.Default
	}
	maps.Copy(env, toggles)
	for _, dim := range dims {
		env[dim.Name] = dim.Value
	}
	return env
}

// maxElements is the most that one array may have.
const maxElements = 1 << 31

// ShapeOf returns the length of each axis of an array; a scalar has none.
func (m *Manifest) ShapeOf(a *Argument, dims Dims, toggles map[string]int) ([]int, error) {
	env := m.Env(dims, toggles)
	axes := make([]int, len(a.Shape))
	elements := int64(1)
	for i := range a.Shape {
		length, err := a.Shape[i].within(env, 1, maxElements)
		if err != nil {
			return nil, err
		}
		if elements > maxElements/length {
			return nil, &fault{what: "has more than 2^31 elements", fix: "make the array smaller"}
		}
		elements *= length
		axes[i] = int(length)
	}
	return axes, nil
}

// ScalarValue returns what is passed for a scalar argument.
func (m *Manifest) ScalarValue(a *Argument, dims Dims, toggles map[string]int) (float64, error) {
	value := a.scalar()
	if value == nil {
		return 0, fmt.Errorf("argument %s has no value: it is an array", a.Name)
	}
	return value.as(a.DType, m.Env(dims, toggles))
}

// wholeRanges are the values that integers hold; for the widest, those that expressions hold, too.
var wholeRanges = map[DType][2]int64{
	I8: {math.MinInt8, math.MaxInt8}, U8: {0, math.MaxUint8}, I16: {math.MinInt16, math.MaxInt16}, U16: {0, math.MaxUint16},
	I32: {math.MinInt32, math.MaxInt32}, U32: {0, math.MaxUint32}, I64: {-maxWhole, maxWhole}, U64: {0, maxWhole}, Bool: {0, 1},
	Int4: {-8, 7},
}

// as returns an expression's value in a format.
func (e *Expr) as(d DType, env Env) (float64, error) {
	limits, ok := wholeRanges[d]
	if !ok {
		return e.eval(env)
	}
	whole, err := e.within(env, limits[0], limits[1])
	return float64(whole), err
}
