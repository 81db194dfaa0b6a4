package kernels

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// What CUDA allows of a tensor map.
const (
	maxMapAxes = 5
	maxBox     = 256
	mapAlign   = 16 // bytes: of rows, and of a box's innermost axis
)

// A TensorMap has an array passed as a descriptor for bulk tensor copies: the
// kernel declares it as const __grid_constant__ CUtensorMap.
type TensorMap struct {
	Box       []Expr    `yaml:"box" required:"true" eg:"[1, 1, 64, D]" bounds:"(as many as shape has; 1 to 256 each)" doc:"Elements that one copy moves, for each axis of shape, in its order."`
	Swizzle   Swizzle   `yaml:"swizzle" eg:"128" default:"(none)" doc:"Over how many bytes rows of the box are spread in shared memory's banks."`
	Promotion Promotion `yaml:"promotion" eg:"256" default:"(none)" doc:"How many bytes the L2 fetches at once."`
	Fill      Fill      `yaml:"fill" eg:"nan" default:"(zero)" doc:"What a copy finds outside of the array."`
}

// A Swizzle is a width in bytes, or none.
type Swizzle string

var swizzles = []Swizzle{"none", "32", "64", "128"}

func (s *Swizzle) UnmarshalStrict(n *strict.Node) { strict.Word(n, s, swizzles) }
func (s *Swizzle) JSONSchema() map[string]any     { return widthSchema(swizzles) }

// Bytes is the width; 0 is none.
func (s Swizzle) Bytes() int { return width(string(s)) }

// A Promotion is a number of bytes, or none.
type Promotion string

var promotions = []Promotion{"none", "64", "128", "256"}

func (p *Promotion) UnmarshalStrict(n *strict.Node) { strict.Word(n, p, promotions) }
func (p *Promotion) JSONSchema() map[string]any     { return widthSchema(promotions) }

// Bytes is the number; 0 is none.
func (p Promotion) Bytes() int { return width(string(p)) }

func width(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// widthSchema has numbers as editors see them in YAML.
func widthSchema[T ~string](words []T) map[string]any {
	var all []any
	for _, w := range words {
		if n := width(string(w)); n > 0 {
			all = append(all, n)
		} else {
			all = append(all, string(w))
		}
	}
	return map[string]any{"enum": all}
}

// A Fill is the value of elements that do not exist.
type Fill string

// FillNaN makes whatever is computed from them seen.
const FillNaN Fill = "nan"

var fills = []Fill{"zero", FillNaN}

func (f *Fill) UnmarshalStrict(n *strict.Node) { strict.Word(n, f, fills) }
func (f *Fill) JSONSchema() map[string]any     { return strict.WordSchema(fills) }

var floats = []DType{F16, BF16, F32, F64}

// validateMap looks at an array's tensor map beside its shape.
func (a *Argument) validateMap(n *strict.Node) {
	m, at := a.TensorMap, n.Child("tensor_map")
	switch {
	case m == nil:
	case len(a.Shape) > maxMapAxes:
		at.Errorf("the array has %d axes (a tensor map has at most %d)", len(a.Shape), maxMapAxes)
	case len(m.Box) != len(a.Shape):
		at.Child("box").Errorf("has %d of the sizes (write %d, one for each axis of shape)", len(m.Box), len(a.Shape))
	case m.Fill == FillNaN && !slices.Contains(floats, a.DType):
		at.Child("fill").Errorf("%s has no NaN that a copy can write (write zero)", a.DType)
	}
}

// checkTensorMap sees to it that the mode and every architecture have tensor
// maps.
func (c *checker) checkTensorMap(a *Argument, at *strict.Node) {
	if a.TensorMap == nil {
		return
	}
	if c.m.Mode == ModeCPU {
		c.errorf(at, "is not read in cpu mode (delete it)")
		return
	}
	for _, v := range c.m.Variants {
		for _, arch := range c.m.ArchOf(v.Name) {
			if n := arch.capability(); n > 0 && n < firstWithClusters {
				c.errorf(at, "variant %s is built for %s, which has no tensor maps (write sm_90 or later in arch, or delete it)", v.Name, arch)
				return
			}
		}
	}
}

// A Tile is a tensor map in numbers, axes as in the manifest: the innermost one
// last.
type Tile struct {
	Shape, Box []int
	ItemSize   int // bytes of an element
	Swizzle    int // bytes; 0 is none
	Promotion  int // bytes; 0 is none
	NaNFill    bool
}

// TileOf is an argument's tensor map for one problem size.
func (m *Manifest) TileOf(a *Argument, dims Dims, toggles map[string]int) (Tile, error) {
	shape, err := m.ShapeOf(a, dims, toggles)
	if err != nil {
		return Tile{}, err
	}
	t := Tile{
		Shape: shape, Box: make([]int, len(shape)), ItemSize: sizes[a.DType],
		Swizzle: a.TensorMap.Swizzle.Bytes(), Promotion: a.TensorMap.Promotion.Bytes(), NaNFill: a.TensorMap.Fill == FillNaN,
	}
	env := m.Env(dims, toggles)
	for i := range a.TensorMap.Box {
		if err := axis(&t.Box[i], &a.TensorMap.Box[i], env, maxBox); err != nil {
			return t, err
		}
	}
	last := len(shape) - 1
	inner := &a.TensorMap.Box[last]
	switch row, bytes := shape[last]*t.ItemSize, t.Box[last]*t.ItemSize; {
	case last > 0 && row%mapAlign != 0:
		return t, &fault{&a.Shape[last], fmt.Sprintf("makes rows of %d bytes", row), fmt.Sprintf("make them a multiple of %d, as a tensor map needs", mapAlign)}
	case bytes%mapAlign != 0:
		return t, &fault{inner, fmt.Sprintf("is %d bytes", bytes), fmt.Sprintf("make it a multiple of %d", mapAlign)}
	case t.Swizzle > 0 && bytes > t.Swizzle:
		return t, &fault{inner, fmt.Sprintf("is %d bytes, more than the swizzle's %d", bytes, t.Swizzle), "make it smaller, or the swizzle wider"}
	}
	return t, nil
}
