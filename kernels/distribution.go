package kernels

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Distribution names how the values of an input are drawn.
type Distribution string

const (
	// Normal is N(0, 1).
	Normal Distribution = "normal"
	// Uniform is uniform on [-1, 1).
	Uniform Distribution = "uniform"
	// Dominant is N(0, 1), but in every matrix (the last two axes) one row is six times as large. Which row depends
	// on the seed, the matrix's index and the number of rows alone, so that arguments that share them
	// agree. A key that large has scores of σ = 6 where the others have 1: it takes most of the softmax for
	// some of the queries and nothing for others, which a kernel that rescales wrongly does not survive.
	// Of a vector, one element is large.
	Dominant Distribution = "dominant"
	// Large is N(0, 8²).
	Large Distribution = "large"
	// Constant is one value for the whole tensor, of either sign and a magnitude in [½, 2]: never so near zero
	// that a kernel which writes zeros would look right.
	Constant Distribution = "constant"
	// Zero is 0 throughout.
	Zero Distribution = "zero"
	// Ones is 1 throughout.
	Ones Distribution = "ones"
	// Peaks is N(0, 1), but in every row (the last axis) one element is 128: e¹²⁸ is beyond f32, while 128² and a
	// few thousand such values are not beyond f16, so that a sum or a product of such rows is still one. A vector
	// is one row.
	Peaks Distribution = "peaks"
	// Edges is zeros of both signs, and N(0, 1) times 1, 2⁻⁸, 2⁻¹⁶, 2⁻¹³² and 2⁻¹⁰⁴⁰: every format of floats has
	// denormals among them.
	Edges Distribution = "edges"
	// Infinite is Edges with an infinity of either sign in one of 64 elements, in arguments whose manifest says
	// infinities: true; in all others it is Edges.
	Infinite Distribution = "infinite"
)

// Distributions lists every distribution. New ones go to the end: device code knows them by their place.
func Distributions() []Distribution {
	return []Distribution{Normal, Uniform, Dominant, Large, Constant, Zero, Ones, Peaks, Edges, Infinite}
}

func (d *Distribution) UnmarshalStrict(n *strict.Node) { strict.Word(n, d, Distributions()) }
func (d *Distribution) JSONSchema() map[string]any     { return strict.WordSchema(Distributions()) }

// infiniteDTypes are the formats that keep an infinity which was drawn.
var infiniteDTypes = []DType{F16, BF16, F32, F64}

// validateInfinities refuses them where none can be drawn, and where the problem does not allow them.
func (a *Argument) validateInfinities(n *strict.Node) {
	at := n.Child("infinities")
	switch {
	case !a.Infinities && a.Init.Draw == Draw(Infinite):
		n.Child("init").Errorf("infinite draws ±Inf, which the problem must allow (add infinities: true)")
	case !a.Infinities:
	case a.Access == Out:
		at.Errorf("an output is not drawn (delete it, or write access: inout)")
	case a.Quantize != nil:
		at.Errorf("a quantised array has none: its scale would be infinite (delete it)")
	case !slices.Contains(infiniteDTypes, a.DType):
		at.Errorf("%s keeps no infinities (delete it, or write one of %s)", a.DType, strict.JoinWords(infiniteDTypes))
	}
}
