package kernels

import "github.com/kernelgate/kernelgate/policies/strict"

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
)

// Distributions lists every distribution.
func Distributions() []Distribution {
	return []Distribution{Normal, Uniform, Dominant, Large, Constant, Zero, Ones}
}

func (d *Distribution) UnmarshalStrict(n *strict.Node) { strict.Word(n, d, Distributions()) }
func (d *Distribution) JSONSchema() map[string]any     { return strict.WordSchema(Distributions()) }
