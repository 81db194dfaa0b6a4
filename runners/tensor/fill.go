package tensor

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

const (
	dominance    = 6
	largeSigma   = 8
	integerSigma = 16
	int4Sigma    = 4
	peak         = 128
)

// Fill writes pseudo-random values into dst, which has the given shape in row-major order. The same
// dist, seed, stream and shape give the same bits on every platform and in every version; any
// difference gives unrelated values. stream is the argument's name, so that q, k and v differ.
//
// Fill panics if len(dst) is not the shape's number of elements, or if dist is not in
// distribution.All.
func Fill(dst []float64, dist distribution.Kind, seed uint64, stream string, shape []int) {
	if n, err := Elements(shape); err != nil || n != len(dst) {
		panic(fmt.Sprintf("tensor: %d elements to fill for shape %v", len(dst), shape))
	}
	r := KeyOf(dist, seed, stream, shape)
	switch dist {
	case distribution.Normal:
		r.normal(dst, 1)
	case distribution.Uniform:
		for i := range dst {
			dst[i] = r.uniform(i)
		}
	case distribution.Dominant:
		r.normal(dst, 1)
		raiseRows(dst, seed, shape)
	case distribution.Large:
		r.normal(dst, largeSigma)
	case distribution.Constant:
		x := r.uniform(0)
		set(dst, math.Copysign(0.5+float64(1.5*math.Abs(x)), x))
	case distribution.Peaks:
		r.normal(dst, 1)
		r.raisePeaks(dst, shape)
	case distribution.Edges, distribution.Infinite:
		r.normal(dst, 1)
		r.sharpen(dst, dist == distribution.Infinite)
	case distribution.Zero:
		set(dst, 0)
	case distribution.Ones:
		set(dst, 1)
	default:
		panic(fmt.Sprintf("tensor: unknown distribution %q", string(dist)))
	}
}

// fill draws an argument's values. It does not round floats to the argument's format, because the
// reference may need them unrounded. Integers are exactly the values that Encode keeps.
func (a *Arg) fill(dst []float64, asked distribution.Kind, seed uint64) {
	dist, f, whole := a.Distribution(asked), a.Filling, !a.DType.Float() && a.Scales < 0
	if f.Exact() {
		KeyOf(dist, seed, a.Name, a.Shape).exact(dst, f, whole, a.Shape)
		return
	}
	Fill(dst, dist, seed, a.Name, a.Shape)
	for i, x := range dst {
		x *= f.Scale
		if whole {
			x = integral(a.DType, x, dist == distribution.Zero || dist == distribution.Ones)
		}
		switch { // min and max would treat −0 as less than 0
		case f.Bounded && x < f.Least:
			x = f.Least
		case f.Bounded && x > f.Most:
			x = f.Most
		}
		dst[i] = x
	}
}

// integral converts a draw to an integer of a format. N(0, 1) would leave almost only zeros, so
// draws are multiplied by 16, rounded and clamped to d's range; large then reaches both ends of i8.
// Unsigned formats use magnitudes, and a bool is true for a positive draw. The distributions zero
// and ones keep their values.
func integral(d manifest.DType, x float64, said bool) float64 {
	least, most := -math.MaxFloat64, math.MaxFloat64
	switch d {
	case manifest.Int4:
		least, most = -8, 7
	case manifest.I8:
		least, most = math.MinInt8, math.MaxInt8
	case manifest.U8:
		least, most = 0, math.MaxUint8
	case manifest.I16:
		least, most = math.MinInt16, math.MaxInt16
	case manifest.U16:
		least, most = 0, math.MaxUint16
	case manifest.U32, manifest.U64:
		least = 0
	case manifest.Bool:
		least, most = 0, 1
	}
	switch {
	case said:
	case d == manifest.Int4:
		x *= int4Sigma
	default:
		x *= integerSigma
	}
	x = math.RoundToEven(x)
	if least == 0 && d != manifest.Bool {
		x = math.Abs(x)
	}
	return min(max(x, least), most) + 0 // no integer is −0
}

// Matrix returns the numbers of rows and columns of the last two axes. A vector is one column.
func Matrix(shape []int) (rows, columns int) {
	rows, columns = 1, 1
	switch n := len(shape); {
	case n >= 2:
		rows, columns = shape[n-2], shape[n-1]
	case n == 1:
		rows = shape[0]
	}
	return rows, columns
}

func raiseRows(dst []float64, seed uint64, shape []int) {
	rows, columns := Matrix(shape)
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

// places is the index of the first draw that normal does not use.
const places = 1 << 63

// raisePeaks makes one element of every row large. A single column counts as one row.
func (k Key) raisePeaks(dst []float64, shape []int) {
	rows, width := Matrix(shape)
	if width == 1 {
		width = rows
	}
	for row := 0; row*width < len(dst); row++ {
		at, _ := bits.Mul64(k.bits(places+uint64(row)), uint64(width))
		dst[row*width+int(at)] = peak
	}
}

// sharpen makes some normal values zero or small and, if infinite is set, some infinite.
func (k Key) sharpen(dst []float64, infinite bool) {
	for i, x := range dst {
		draw := k.bits(places + uint64(i))
		switch draw & 7 {
		case 0:
			x = 0
		case 1:
			x = math.Copysign(0, -1)
		case 2:
			x *= 0x1p-8
		case 3:
			x *= 0x1p-16
		case 4:
			x *= 0x1p-132
		case 5:
			x *= 0x1p-1040
		}
		if infinite && draw>>3&63 == 0 {
			x = math.Inf(1 - int(draw>>9&1)<<1)
		}
		dst[i] = x
	}
}

// DominantKey returns the key from which the dominant rows of all arguments are derived.
func DominantKey(seed uint64) uint64 { return mix(seed) }

func dominantRow(seed uint64, matrix, rows int) int {
	// The product's upper half is an index among the rows.
	row, _ := bits.Mul64(mix(DominantKey(seed)+uint64(matrix)), uint64(rows))
	return int(row)
}

func set(dst []float64, value float64) {
	for i := range dst {
		dst[i] = value
	}
}

// mix is a bijection that spreads every input bit over all 64. Its factors are the fractional parts
// of √2 and √3, made odd.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0x6A09E667F3BCC909
	x ^= x >> 29
	x *= 0xBB67AE8584CAA73B
	x ^= x >> 32
	return x
}
