package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
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
)

const (
	dominance    = 6
	largeSigma   = 8
	integerSigma = 16
)

// Distributions lists every distribution.
func Distributions() []Distribution {
	return []Distribution{Normal, Uniform, Dominant, Large, Constant, Zero, Ones}
}

// ParseDistribution reads a distribution's name as a manifest writes it.
func ParseDistribution(s string) (Distribution, error) {
	if slices.Contains(Distributions(), Distribution(s)) {
		return Distribution(s), nil
	}
	return "", fmt.Errorf("unknown distribution %q: use one of %s", s, join(Distributions()))
}

// Fill writes pseudo-random values into dst, which has the given shape in row-major order. The same dist, seed,
// stream and shape give the same bits on every platform and in every version; any other gives unrelated values.
// stream is the argument's name, so that q, k and v differ.
//
// It panics when len(dst) is not the shape's number of elements, or dist is none that ParseDistribution knows.
func Fill(dst []float64, dist Distribution, seed uint64, stream string, shape []int) {
	if n, err := Elements(shape); err != nil || n != len(dst) {
		panic(fmt.Sprintf("tensor: %d elements to fill for shape %v", len(dst), shape))
	}
	r := KeyOf(dist, seed, stream, shape)
	switch dist {
	case Normal:
		r.normal(dst, 1)
	case Uniform:
		for i := range dst {
			dst[i] = r.uniform(i)
		}
	case Dominant:
		r.normal(dst, 1)
		raiseRows(dst, seed, shape)
	case Large:
		r.normal(dst, largeSigma)
	case Constant:
		x := r.uniform(0)
		set(dst, math.Copysign(0.5+float64(1.5*math.Abs(x)), x))
	case Zero:
		set(dst, 0)
	case Ones:
		set(dst, 1)
	default:
		panic(fmt.Sprintf("tensor: unknown distribution %q", string(dist)))
	}
}

// FillAs is Fill for an argument of format d. Floats are left as Fill drew them, not rounded to d: the reference may
// want them unrounded. N(0, 1) would leave an integer next to nothing, so integers are drawn 16 times as large,
// rounded and held to d's range (large then reaches both ends of i8), and u8 takes magnitudes; zero and ones stay
// what they say. What is written for integers is therefore exactly what Encode keeps.
func FillAs(d DType, dst []float64, dist Distribution, seed uint64, stream string, shape []int) {
	Fill(dst, dist, seed, stream, shape)
	if d.Float() || dist == Zero || dist == Ones {
		return
	}
	least, most := -math.MaxFloat64, math.MaxFloat64
	switch d {
	case I8:
		least, most = math.MinInt8, math.MaxInt8
	case U8:
		least, most = 0, math.MaxUint8
	}
	for i, x := range dst {
		x = math.RoundToEven(x * integerSigma)
		if d == U8 {
			x = math.Abs(x)
		}
		dst[i] = min(max(x, least), most) + 0 // −0 is no integer
	}
}

func raiseRows(dst []float64, seed uint64, shape []int) {
	rows, columns := 1, 1
	switch n := len(shape); {
	case n >= 2:
		rows, columns = shape[n-2], shape[n-1]
	case n == 1:
		rows = shape[0]
	}
	if len(dst) == 0 {
		return
	}
	for matrix := range len(dst) / (rows * columns) {
		row := dominantRow(seed, matrix, rows)
		start := (matrix*rows + row) * columns
		for i := start; i < start+columns; i++ {
			dst[i] *= dominance
		}
	}
}

// DominantKey is what the dominant rows of all arguments follow from.
func DominantKey(seed uint64) uint64 { return mix(seed) }

func dominantRow(seed uint64, matrix, rows int) int {
	row, _ := bits.Mul64(mix(DominantKey(seed)+uint64(matrix)), uint64(rows)) // the product's upper half: a place among the rows
	return int(row)
}

func set(dst []float64, value float64) {
	for i := range dst {
		dst[i] = value
	}
}

// mix is a bijection that spreads every input bit over all 64. Its factors are the fractions of √2 and √3, made odd.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0x6A09E667F3BCC909
	x ^= x >> 29
	x *= 0xBB67AE8584CAA73B
	x ^= x >> 32
	return x
}
