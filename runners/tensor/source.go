package tensor

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
)

// A source draws pseudo-random numbers that are the same bits everywhere. The generator's integers are; what is made
// of them uses only operations that IEEE 754 rounds in one way: + − × ÷ √. The library's logarithm and its normal
// variates differ between architectures, and so would a compiler that fuses a product with a sum: the conversions
// float64(a*b) below are what forbids that.
type source struct{ pcg *rand.PCG }

func newSource(dist string, seed uint64, stream string, shape []int) source {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %q %d", dist, seed, stream, shape)
	digest := h.Sum(nil)
	return source{rand.NewPCG(le.Uint64(digest), le.Uint64(digest[8:]))}
}

// uniform is in [-1, 1), in steps of 2⁻⁵².
func (s source) uniform() float64 {
	return float64(int64(s.pcg.Uint64())>>11) * 0x1p-52
}

// normal fills dst with N(0, sigma²) by the polar method: a point drawn in the unit disc gives two variates, from
// one logarithm and one root. Points are drawn some hundred at a time, because a processor that guesses wrong
// whether a point is in the disc throws away what it began on the logarithm.
func (s source) normal(dst []float64, sigma float64) {
	var x, y, square [128]float64
	for len(dst) > 0 {
		pairs := min(len(x), (len(dst)+1)/2)
		for n := 0; n < pairs; {
			draw := s.pcg.Uint64()
			x[n], y[n] = float64(int32(draw))*0x1p-31, float64(int32(draw>>32))*0x1p-31
			square[n] = float64(x[n]*x[n]) + float64(y[n]*y[n])
			if square[n] < 1 && square[n] > 0 {
				n++
			}
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

// logarithm is ln x for a positive normal x, to about 13 digits: ln(m·2ᵉ) = e·ln 2 + 2·artanh((m−1)/(m+1)), with m
// between √½ and √2, where the series t + t³/3 + t⁵/5 + … converges fast.
func logarithm(x float64) float64 {
	// Subtracting the bits of √½ moves the border between two exponents to where m's range begins.
	const sqrtHalf = 0x3FE6A09E667F3BCD
	word := math.Float64bits(x)
	exponent := int64(word-sqrtHalf) >> f64Mantissa
	m := math.Float64frombits(word - uint64(exponent)<<f64Mantissa)
	t := (m - 1) / (m + 1)
	z := t * t
	zz := z * z
	zzzz := zz * zz
	// Summed in pairs, so that fewer products wait for each other.
	low := 1 + float64(z*(1.0/3)) + float64(zz*(1.0/5+float64(z*(1.0/7))))
	high := 1.0/9 + float64(z*(1.0/11)) + float64(zz*(1.0/13+float64(z*(1.0/15))))
	series := low + float64(zzzz*(high+float64(zzzz*(1.0/17))))
	return float64(float64(exponent)*math.Ln2) + float64(2*t*series)
}
