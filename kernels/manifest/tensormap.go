package manifest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// What CUDA allows of a tensor map.
const (
	maxMapAxes = 5
	maxBox     = 256
	mapAlign   = 16 // bytes: of rows, and of a box's innermost axis
)

// A TensorMap makes an array be passed as a descriptor for bulk tensor copies: a CUDA kernel
// declares it as const __grid_constant__ CUtensorMap, and a Triton kernel calls its load and store.
type TensorMap struct {
	Box       []Expr    `yaml:"box" required:"true" eg:"[1, 1, 64, D]" bounds:"(as many as shape has; 1 to 256 each, for Triton powers of two)" doc:"Number of elements that one copy moves along each axis of shape, in the same order. For Triton: the block_shape of the descriptor."`
	Shape     []Expr    `yaml:"shape" eg:"[1, B*H, S, D]" default:"(the array's)" bounds:"(1 to 5 entries)" doc:"Axes that the kernel sees instead of those of the array, in the same memory."`
	Strides   []Expr    `yaml:"strides" eg:"[H*S*D, S*D, D, 1]" default:"(row-major, without gaps)" bounds:"(as many as shape has; the last is 1)" doc:"Stride of each axis of shape, in elements."`
	Swizzle   Swizzle   `yaml:"swizzle" eg:"128" default:"(none)" doc:"Swizzle width in bytes: how rows of the box are spread over the banks of shared memory. Triton chooses it."`
	Promotion Promotion `yaml:"promotion" eg:"256" default:"(none)" doc:"L2 promotion: how many bytes the L2 fetches at once. Triton chooses it."`
	Align     MapAlign  `yaml:"align" eg:"64" default:"(128)" doc:"Alignment in bytes of the CUtensorMap as a member of a struct: 128 with the headers of CUDA 13, 64 with those of CUDA 12."`
	Fill      Fill      `yaml:"fill" eg:"nan" default:"(zero)" doc:"Value of elements outside of the array."`
}

// A Swizzle is a width in bytes, or none.
type Swizzle string

var swizzles = []Swizzle{"none", "32", "64", "128"}

func (s *Swizzle) UnmarshalStrict(n *strict.Node) { strict.Word(n, s, swizzles) }
func (s *Swizzle) JSONSchema() map[string]any     { return widthSchema(swizzles) }

// bytes returns the width; 0 means none.
func (s Swizzle) bytes() int { return width(string(s)) }

// A Promotion is a number of bytes, or none.
type Promotion string

var promotions = []Promotion{"none", "64", "128", "256"}

func (p *Promotion) UnmarshalStrict(n *strict.Node) { strict.Word(n, p, promotions) }
func (p *Promotion) JSONSchema() map[string]any     { return widthSchema(promotions) }

// bytes returns the number; 0 means none.
func (p Promotion) bytes() int { return width(string(p)) }

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

// A MapAlign is a number of bytes. The header of CUDA that declares CUtensorMap decides it.
type MapAlign string

var mapAligns = []MapAlign{"128", "64"}

func (a *MapAlign) UnmarshalStrict(n *strict.Node) { strict.Word(n, a, mapAligns) }
func (a *MapAlign) JSONSchema() map[string]any     { return widthSchema(mapAligns) }

func (a MapAlign) bytes() int { return width(string(cmp.Or(a, mapAligns[0]))) }

// other is the alignment that the header of another CUDA has.
func (a MapAlign) other() MapAlign {
	if a.bytes() == width(string(mapAligns[0])) {
		return mapAligns[1]
	}
	return mapAligns[0]
}

// A Fill is the value of elements that do not exist.
type Fill string

// FillNaN makes visible whatever is computed from them.
const FillNaN Fill = "nan"

var fills = []Fill{"zero", FillNaN}

func (f *Fill) UnmarshalStrict(n *strict.Node) { strict.Word(n, f, fills) }
func (f *Fill) JSONSchema() map[string]any     { return strict.WordSchema(fills) }

var floats = []DType{F16, BF16, F32, F64}

// validateMap checks an array's tensor map against its shape.
func (a *Argument) validateMap(n *strict.Node) {
	m, at := a.TensorMap, n.Child("tensor_map")
	if m == nil {
		return
	}
	axes := len(a.Shape)
	if at.Has("shape") {
		axes = len(m.Shape)
	}
	switch {
	case at.Has("shape") && (axes < 1 || axes > maxMapAxes):
		at.Child("shape").Errorf("has %d axes (write 1 to %d)", axes, maxMapAxes)
	case axes > maxMapAxes:
		at.Errorf("the array has %d axes (a tensor map has at most %d; write its shape with fewer, e.g. shape: [B*H*S, D])", axes, maxMapAxes)
	case len(m.Box) != axes:
		at.Child("box").Errorf("has %d of the sizes (write %d, one for each axis of shape)", len(m.Box), axes)
	case at.Has("strides") && len(m.Strides) != axes:
		at.Child("strides").Errorf("has %d strides (write %d, one for each axis of shape)", len(m.Strides), axes)
	case m.Fill == FillNaN && !slices.Contains(floats, a.DType):
		at.Child("fill").Errorf("%s has no NaN that a copy can write (write zero)", a.DType)
	}
}

// checkTensorMap checks that the mode and every architecture have tensor maps.
func (c *checker) checkTensorMap(a *Argument, at *strict.Node) {
	if a.TensorMap == nil {
		return
	}
	if c.m.Mode == ModeCPU {
		c.errorf(at, "is not read in cpu mode (delete it)")
		return
	}
	if c.m.Compiler == Triton {
		return // where there are no tensor maps it passes addresses
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

// A Tile is a tensor map in numbers, axes as in the manifest: the innermost one last.
type Tile struct {
	Shape, Box []int
	Strides    []int // elements
	ItemSize   int   // bytes of an element
	Swizzle    int   // bytes; 0 is none
	Promotion  int   // bytes; 0 is none
	NaNFill    bool
}

// TileOf returns an argument's tensor map for one problem size.
func (m *Manifest) TileOf(a *Argument, dims Dims, toggles map[string]int) (Tile, error) {
	t := Tile{
		ItemSize: sizes[a.DType],
		Swizzle:  a.TensorMap.Swizzle.bytes(), Promotion: a.TensorMap.Promotion.bytes(), NaNFill: a.TensorMap.Fill == FillNaN,
	}
	if err := m.view(&t, a, dims, toggles); err != nil {
		return t, err
	}
	var err error
	if t.Box, err = m.boxOf(a, m.Env(dims, toggles)); err != nil {
		return t, err
	}
	last := len(t.Shape) - 1
	inner := &a.TensorMap.Box[last]
	switch bytes := t.Box[last] * t.ItemSize; {
	case bytes%mapAlign != 0:
		return t, &fault{inner, fmt.Sprintf("is %d bytes", bytes), fmt.Sprintf("make it a multiple of %d", mapAlign)}
	case t.Swizzle > 0 && bytes > t.Swizzle:
		return t, &fault{inner, fmt.Sprintf("is %d bytes, more than the swizzle's %d", bytes, t.Swizzle), "make it smaller, or the swizzle wider"}
	}
	return t, nil
}

// boxOf returns what one copy moves.
func (m *Manifest) boxOf(a *Argument, env Env) ([]int, error) {
	if m.Compiler == Triton {
		return a.TensorMap.block(env)
	}
	return axesOf(a.TensorMap.Box, env, maxBox)
}

// view returns the axes of a tensor map, and the distances of their elements. All of them are
// within the array.
func (m *Manifest) view(t *Tile, a *Argument, dims Dims, toggles map[string]int) error {
	array, err := m.ShapeOf(a, dims, toggles)
	if err != nil {
		return err
	}
	view, shape := a.TensorMap, a.Shape
	t.Shape = array
	if view.Shape != nil {
		shape = view.Shape
		if t.Shape, err = axesOf(shape, m.Env(dims, toggles), math.MaxInt32); err != nil {
			return err
		}
	}
	last := len(shape) - 1
	if t.Strides = packed(t.Shape); view.Strides != nil {
		if t.Strides, err = axesOf(view.Strides, m.Env(dims, toggles), maxElements); err != nil {
			return err
		}
		if t.Strides[last] != 1 {
			return &fault{&view.Strides[last], fmt.Sprintf("is %d", t.Strides[last]), "make it 1: a copy takes neighbours"}
		}
	}
	end := int64(1)
	for i := range t.Shape {
		if t.Shape[i] > math.MaxInt32 {
			return &fault{&shape[i], fmt.Sprintf("is %d", t.Shape[i]), "make it less than 2^31, as a tensor map needs"}
		}
		if i == last {
			end += int64(t.Shape[i] - 1)
			continue
		}
		if end += int64(t.Shape[i]-1) * int64(t.Strides[i]); end > maxElements { // 2^62 at most, and no more is added
			break
		}
		switch bytes := t.Strides[i] * t.ItemSize; {
		case bytes%mapAlign == 0:
		case view.Strides != nil:
			return &fault{&view.Strides[i], fmt.Sprintf("is %d bytes", bytes), fmt.Sprintf("make it a multiple of %d", mapAlign)}
		default:
			return &fault{&shape[last], fmt.Sprintf("makes rows of %d bytes", t.Shape[last]*t.ItemSize), fmt.Sprintf("make them a multiple of %d, as a tensor map needs", mapAlign)}
		}
	}
	if elements := product(array); end > elements {
		return &fault{what: fmt.Sprintf("reaches over %d elements of an array of %d", end, elements), fix: "make shape or strides smaller"}
	}
	return nil
}

// axesOf is a list of sizes in numbers.
func axesOf(list []Expr, env Env, most int64) ([]int, error) {
	all := make([]int, len(list))
	for i := range list {
		if err := axis(&all[i], &list[i], env, most); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// packed returns the strides of an array without gaps.
func packed(shape []int) []int {
	strides := make([]int, len(shape))
	for i, n := len(shape)-1, 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	return strides
}

// maxBlock is the most elements that Triton loads at once.
const maxBlock = 1 << 20

// block returns the block_shape of a Triton kernel's tensor descriptor. Triton cuts it into boxes
// itself.
func (m *TensorMap) block(env Env) ([]int, error) {
	box, err := axesOf(m.Box, env, maxBlock)
	if err != nil {
		return nil, err
	}
	elements := 1
	for i, n := range box {
		if n&(n-1) != 0 {
			return nil, &fault{&m.Box[i], fmt.Sprintf("is %d", n), "make it a power of two, as Triton needs"}
		}
		if elements *= n; elements > maxBlock {
			return nil, &fault{&m.Box[i], fmt.Sprintf("makes a block of more than %d elements", maxBlock), "make it smaller"}
		}
	}
	return box, nil
}

// descriptorType returns Triton's name for a tensor descriptor.
func descriptorType(d DType, block []int) string {
	return fmt.Sprintf("tensordesc<%s[%s]>", tritonTypes[d], strings.Trim(strings.Join(strings.Fields(fmt.Sprint(block)), ", "), "[]"))
}

// checkDescriptors reports fields of a tensor map that Triton decides itself, and formats without
// descriptors.
func (c *checker) checkDescriptors() {
	for i := range c.m.Arguments {
		a, at := &c.m.Arguments[i], itemOf(c.n.Child("arguments"), i).Child("tensor_map")
		if a.TensorMap == nil {
			continue
		}
		for _, field := range []string{"swizzle", "promotion", "align"} {
			if at.Has(field) {
				c.errorf(at.Child(field), "is what compiler: triton says itself (delete it)")
			}
		}
		if a.DType == Bool {
			c.errorf(at, "Triton has no descriptors of %s (delete it, or write dtype: u8)", a.DType)
		}
	}
}
