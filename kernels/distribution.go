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

// A distributionUse says what a distribution draws and what it is good for.
type distributionUse struct {
	Distribution Distribution
	Draws, For   string
}

// distributionUses describes every distribution, as the reference of the manifest shows them. New ones go to the
// end: device code knows them by their place.
func distributionUses() []distributionUse {
	return []distributionUse{
		{Normal, "N(0, 1)", "the ordinary case; the only one that end_to_end is asked of"},
		{Uniform, "uniform on [−1, 1)", "values of one size, without outliers"},
		{Dominant, "N(0, 1), and one row of every matrix six times as large", "a running maximum that moves late: online softmax that rescales wrongly"},
		{Large, "N(0, 8²)", "saturated softmax, ranges of narrow formats"},
		{Constant, "one value for the whole array, ½ to 2 in size, of either sign", "sums in which nothing cancels; not for normalisation, whose exact result is 0 and leaves rounding alone to compare"},
		{Zero, "0 throughout", "init of an argument that is added to"},
		{Ones, "1 throughout", "init of weights and masks"},
		{Peaks, "N(0, 1), and one element of every row (the last axis) is 128", "an exponential without its maximum: e¹²⁸ is beyond f32. Not for a kernel whose own result overflows, such as a plain exp: write init: normal there"},
		{Edges, "±0, and N(0, 1) times 1, 2⁻⁸, 2⁻¹⁶, 2⁻¹³² or 2⁻¹⁰⁴⁰", "zeros and denormals of every format: division by small sums, flushing to zero, −0"},
		{Infinite, "edges, and ±Inf in one of 64 elements of arguments with infinities: true", "masks of −Inf and overflows that the problem allows; other arguments get edges"},
	}
}

// Distributions lists every distribution.
func Distributions() []Distribution {
	return mapped(distributionUses(), func(u distributionUse) Distribution { return u.Distribution })
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
