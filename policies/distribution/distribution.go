// Package distribution names the ways in which the values of inputs are drawn. Manifests, policies and the programs that draw
// inputs share these names.
package distribution

// A Kind names how the values of an input are drawn, or the recording that they come from.
type Kind string

const (
	// Normal is N(0, 1).
	Normal Kind = "normal"
	// Uniform is uniform on [-1, 1).
	Uniform Kind = "uniform"
	// Dominant is N(0, 1), but in every matrix (the last two axes) one row is six times as large. Which row depends
	// on the seed, the matrix's index and the number of rows alone, so that arguments that share them
	// agree. A key that large has scores of σ = 6 where the others have 1: it takes most of the softmax for
	// some of the queries and nothing for others, which a kernel that rescales wrongly does not survive.
	// Of a vector, one element is large.
	Dominant Kind = "dominant"
	// Large is N(0, 8²).
	Large Kind = "large"
	// Constant is one value for the whole tensor, of either sign and a magnitude in [½, 2]: never so near zero
	// that a kernel which writes zeros would look right.
	Constant Kind = "constant"
	// Zero is 0 throughout.
	Zero Kind = "zero"
	// Ones is 1 throughout.
	Ones Kind = "ones"
	// Peaks is N(0, 1), but in every row (the last axis) one element is 128: e¹²⁸ is beyond f32, while 128² and a
	// few thousand such values are not beyond f16, so that a sum or a product of such rows is still one. A vector
	// is one row.
	Peaks Kind = "peaks"
	// Edges is zeros of both signs, and N(0, 1) times 1, 2⁻⁸, 2⁻¹⁶, 2⁻¹³² and 2⁻¹⁰⁴⁰: every format of floats has
	// denormals among them.
	Edges Kind = "edges"
	// Infinite is Edges with an infinity of either sign in one of 64 elements, in arguments whose manifest says
	// infinities: true; in all others it is Edges.
	Infinite Kind = "infinite"
)

// All lists every kind that is drawn at random. New ones go to the end: device code knows them by their index.
func All() []Kind {
	return []Kind{Normal, Uniform, Dominant, Large, Constant, Zero, Ones, Peaks, Edges, Infinite}
}
