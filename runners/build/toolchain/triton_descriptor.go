package toolchain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// A Descriptor says how code takes an array that is a tensor descriptor in Triton: as a tensor map
// or, without one, as an address, the shape and the strides in 64 bits each, and flags. In both
// cases the shape follows in 32 bits, and the strides in 64.
type Descriptor struct {
	Axes  int  `json:"axes"`
	Map   *Map `json:"map,omitempty"`
	Flags int  `json:"flags,omitempty"` // bytes of 0 or 1: whether elements outside of the array are NaN, then what is never set here
}

// A Map is a tensor map as the code was compiled for it. The launch decides what it maps.
type Map struct {
	Box     []int `json:"box"`     // elements that one copy moves, the innermost axis last
	Swizzle int   `json:"swizzle"` // bytes; 0 is none
}

const (
	mapBytes  = 128
	maxMapBox = 256
	mapRow    = 16 // bytes that a row of a box has a multiple of
	maxFlags  = 8
)

// sizes returns the bytes of the parameters that a descriptor is passed as.
func (d Descriptor) sizes() []int {
	all := []int{mapBytes}
	if d.Map == nil {
		all = slices.Concat([]int{8}, slices.Repeat([]int{8}, 2*d.Axes), slices.Repeat([]int{1}, d.Flags))
	}
	return slices.Concat(all, slices.Repeat([]int{4}, d.Axes), slices.Repeat([]int{8}, d.Axes))
}

// A tensorSaid is Triton's description of a tensor map, with Triton's names.
type tensorSaid struct {
	Swizzle     int   `json:"swizzle"` // CUtensorMapSwizzle
	ElementSize int   `json:"elem_size"`
	Element     int   `json:"elem_type"`
	Box         []int `json:"block_size"`
	PaddedFP4   bool  `json:"fp4_padded"`
	Im2col      bool  `json:"is_im2col"`
}

// tensorElements are the formats of elements by their numbers in PTX (tensormap.replace,
// .elemtype). The driver's numbers differ; the code that makes the map chooses them by the
// manifest's format.
var tensorElements = map[manifest.DType]int{
	manifest.E4M3: 0, manifest.E5M2: 0, manifest.I8: 0, manifest.U8: 0, manifest.I16: 1, manifest.U16: 1, manifest.U32: 2, manifest.I32: 3,
	manifest.U64: 4, manifest.I64: 5, manifest.F16: 6, manifest.F32: 7, manifest.F64: 9, manifest.BF16: 10,
}

// swizzleBytes are the widths by their number.
var swizzleBytes = []int{0, 32, 64, 128}

// asMap compares the description of a tensor map with its argument, and with what GPUs allow. The
// error is for people.
func (s tensorSaid) asMap(a manifest.SpecialArgument) (*Map, error) {
	element, known := tensorElements[a.DType]
	switch {
	case s.PaddedFP4 || s.Im2col:
		return nil, fmt.Errorf("a map of %s as padded FP4 or im2col, which kernelgate cannot make yet", a.Name)
	case !known || s.Element != element || s.ElementSize != a.DType.Size():
		return nil, fmt.Errorf("a map of %s with elements of kind %d and %d bytes, and the manifest has %s", a.Name, s.Element, s.ElementSize, a.DType)
	case s.Swizzle < 0 || s.Swizzle >= len(swizzleBytes):
		return nil, fmt.Errorf("a map of %s with the swizzle %d (0 to %d are possible)", a.Name, s.Swizzle, len(swizzleBytes)-1)
	case len(s.Box) != len(a.Block) || len(s.Box) == 0:
		return nil, fmt.Errorf("a map of %s with %d axes, and the manifest has %d", a.Name, len(s.Box), len(a.Block))
	}
	for i, n := range s.Box {
		if n < 1 || n > maxMapBox || a.Block[i]%n != 0 {
			return nil, fmt.Errorf("a map of %s with boxes of %s, which %s cannot be made of (each axis has 1 to %d elements and divides the block)", a.Name, joined(s.Box), joined(a.Block), maxMapBox)
		}
	}
	width := swizzleBytes[s.Swizzle]
	if row := s.Box[len(s.Box)-1] * s.ElementSize; row%mapRow != 0 || width > 0 && row > width {
		return nil, fmt.Errorf("a map of %s with rows of %d bytes, swizzled over %d (a multiple of %d is possible, and no more than the swizzle)", a.Name, row, width, mapRow)
	}
	return &Map{Box: s.Box, Swizzle: width}, nil
}

// described returns what is passed, with descriptors as the code takes them: all by maps, or all
// without. The manifest says which arguments they are; the build says how they were compiled.
func (s said) described(kind manifest.Special) ([]Passed, error) {
	if s.Flags < 0 || s.Flags > maxFlags {
		return nil, fmt.Errorf("%d flags with a tensor descriptor (up to %d are possible)", s.Flags, maxFlags)
	}
	all, maps := []Passed{}, s.Tensors
	for _, p := range s.Passed {
		p.Descriptor = nil // nobody's word
		if p.Argument >= 0 && p.Argument < len(kind.Arguments) && len(kind.Arguments[p.Argument].Block) > 0 {
			a := kind.Arguments[p.Argument]
			if p.Type != a.Type {
				return nil, fmt.Errorf("the argument %s is %s, and the manifest passes %s", a.Name, elf.Quote(p.Type), a.Type)
			}
			p.Descriptor = &Descriptor{Axes: len(a.Block), Flags: s.Flags}
			if len(s.Tensors) > 0 {
				if len(maps) == 0 {
					return nil, errors.New("fewer tensor maps than tensor descriptors")
				}
				made, err := maps[0].asMap(a)
				if err != nil {
					return nil, err
				}
				p.Descriptor.Flags, p.Descriptor.Map, maps = 0, made, maps[1:]
			}
		}
		all = append(all, p)
	}
	if len(maps) > 0 {
		return nil, errors.New("more tensor maps than tensor descriptors")
	}
	return all, nil
}
