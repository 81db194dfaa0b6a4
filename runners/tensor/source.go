package tensor

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/policies/distribution"
)

// A Key determines an argument's values. Every value is a function of the key and of its index
// only, so that a device can draw all of them in parallel and gets the same bits.
type Key [2]uint64

// KeyOf returns the key of an argument's values. Values of one key reveal nothing about the values
// of another.
func KeyOf(dist distribution.Kind, seed uint64, stream string, shape []int) Key {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %d", string(dist), seed, stream, shape)
	digest := h.Sum(nil)
	return Key{le.Uint64(digest), le.Uint64(digest[8:])}
}

// bits returns the n-th draw. The step between the inputs of the inner mix is 2⁶⁴ over the golden
// ratio, made odd.
func (k Key) bits(n uint64) uint64 { return mix(mix(k[0]+n*0x9E3779B97F4A7C15) ^ k[1]) }

// The functions below use only operations that IEEE 754 rounds in exactly one way: + − × ÷ √. The
// library's logarithm and its normal variates differ between architectures. A compiler that fuses a
// product with a sum would also change the bits; the conversions float64(a*b) below forbid that.

// uniform returns the n-th value in [-1, 1), in steps of 2⁻⁵².
func (k Key) uniform(n int) float64 {
	return float64(int64(k.bits(uint64(n)))>>11) * 0x1p-52
}

// attempts is how many draws are reserved for a pair of normal variates. One in 10⁴² pairs needs
// more, and uses those of the next pair.
const attempts = 64

// normal fills dst with N(0, sigma²) by the polar method: a random point in the unit disc gives two
// variates, from one logarithm and one root. Points are drawn in batches of 128, because a branch
// misprediction on whether a point is in the disc discards speculative work on the logarithm.
func (k Key) normal(dst []float64, sigma float64) {
	var x, y, square [128]float64
	for pair := uint64(0); len(dst) > 0; {
		pairs := min(len(x), (len(dst)+1)/2)
		for n := range pairs {
			for at := pair * attempts; ; at++ {
				draw := k.bits(at)
				x[n], y[n] = float64(int32(draw))*0x1p-31, float64(int32(draw>>32))*0x1p-31
				square[n] = float64(x[n]*x[n]) + float64(y[n]*y[n])
				if square[n] < 1 && square[n] > 0 {
					break
				}
			}
			pair++
		}
		for n := range pairs {
			factor := sigma * math.Sqrt(-2*logarithm(square[n])/square[n])
			dst[0] = x[n] * factor
			if len(dst) == 1 {
				return
			}
			dst[1] = y[n] * factor
			dst = dst[2:]
		}
	}
}

// logarithm returns ln x for a positive normal x, to about 13 digits: ln(m·2ᵉ) = e·ln 2 +
// 2·artanh((m−1)/(m+1)), with m between √½ and √2, where the series t + t³/3 + t⁵/5 + … converges
// fast.
func logarithm(x float64) float64 {
	// Subtracting the bits of √½ moves the boundary between two exponents to the start of m's
	// range.
	const sqrtHalf = 0x3FE6A09E667F3BCD
	word := math.Float64bits(x)
	exponent := int64(word-sqrtHalf) >> f64Mantissa
	m := math.Float64frombits(word - uint64(exponent)<<f64Mantissa)
	t := (m - 1) / (m + 1)
	z := t * t
	zz := z * z
	zzzz := zz * zz
	// Summed in pairs, so that fewer products depend on each other.
	low := 1 + float64(z*(1.0/3)) + float64(zz*(1.0/5+float64(z*(1.0/7))))
	high := 1.0/9 + float64(z*(1.0/11)) + float64(zz*(1.0/13+float64(z*(1.0/15))))
	series := low + float64(zzzz*(high+float64(zzzz*(1.0/17))))
	return float64(float64(exponent)*math.Ln2) + float64(2*t*series)
}
