package tensor

import "math"

// A minifloat describes a binary format of at most 16 bits by the facts that rounding needs. Codes
// exclude the sign.
type minifloat struct {
	mantissa uint   // stored bits
	bias     int    // of the exponent
	largest  uint16 // code of the largest finite value; codes above are infinity or NaN
	inf      uint16 // code of infinity, 0 if there is none
	overflow uint16 // code for values that are too large: largest if the format saturates, else inf
	nan      uint16 // the quiet NaN that Encode writes
	sign     uint   // position of the sign bit
}

// The FP8 formats saturate, infinities included, as CUDA's conversions with __NV_SATFINITE do. The
// 16-bit formats follow IEEE 754. These are constants, which Go cannot declare as const.
var (
	e4m3 = minifloat{mantissa: 3, bias: 7, largest: 0x7E, overflow: 0x7E, nan: 0x7F, sign: 7}
	e5m2 = minifloat{mantissa: 2, bias: 15, largest: 0x7B, inf: 0x7C, overflow: 0x7B, nan: 0x7E, sign: 7}
	f16  = minifloat{mantissa: 10, bias: 15, largest: 0x7BFF, inf: 0x7C00, overflow: 0x7C00, nan: 0x7E00, sign: 15}
	// This format has no NaN. NaN becomes the largest value, as in CUDA's conversion.
	e2m1 = minifloat{mantissa: 1, bias: 1, largest: 0x7, overflow: 0x7, nan: 0x7, sign: 3}
	bf16 = minifloat{mantissa: 7, bias: 127, largest: 0x7F7F, inf: 0x7F80, overflow: 0x7F80, nan: 0x7FC0, sign: 15}
)

const (
	f64Mantissa = 52
	f64Bias     = 1023
	f64Abs      = 1<<63 - 1
	f64Inf      = 0x7FF << f64Mantissa
)

// code rounds x to the nearest code, ties to even. It rounds once, from float64. Rounding through
// float32 would round twice, and a value just above a tie could round the wrong way.
func (f *minifloat) code(x float64) uint16 {
	word := math.Float64bits(x)
	sign := uint16(word>>63) << f.sign
	abs := word & f64Abs
	if abs > f64Inf {
		return f.nan // without sign: in e4m3 the negative NaN is poison
	}

	smallest := uint64(f64Bias+1-f.bias) << f64Mantissa // smallest normal value
	if abs < smallest {
		// In this sum the last place of float64 is the spacing of the subnormals. So the addition
		// itself rounds to even, and a carry out of the subnormals yields the first normal code.
		spacing := uint64(f64Bias+1-f.bias-int(f.mantissa)+f64Mantissa) << f64Mantissa
		sum := math.Float64frombits(abs) + math.Float64frombits(spacing)
		return sign | uint16(math.Float64bits(sum)-spacing)
	}

	drop := f64Mantissa - f.mantissa
	// This is one less if the kept part is even, so that a tie stays there.
	half := uint64(1)<<(drop-1) - 1 + abs>>drop&1
	rounded := (abs+half)>>drop - uint64(f64Bias-f.bias)<<f.mantissa
	if rounded > uint64(f.largest) {
		return sign | f.overflow
	}
	return sign | uint16(rounded)
}

// value returns the value of a code. A NaN loses its payload; poison is recognised by its bytes.
func (f *minifloat) value(code uint16) float64 {
	abs := code &^ (1 << f.sign)
	if abs > f.largest {
		if abs != f.inf {
			return math.NaN()
		}
		return math.Inf(1 - 2*int(code>>f.sign))
	}
	// Interpreted as a float64, the code has the right mantissa, but an exponent that is too small
	// by the difference of the biases. This holds for subnormals too. Multiplying by that power of
	// two is exact.
	small := math.Float64frombits(uint64(code>>f.sign)<<63 | uint64(abs)<<(f64Mantissa-f.mantissa))
	return small * math.Float64frombits(uint64(2*f64Bias-f.bias)<<f64Mantissa)
}

// Decoding 8 bits by table costs one load. The tables are written once, here, and only read
// afterwards.
var (
	e4m3Values = e4m3.table()
	e5m2Values = e5m2.table()
)

func (f *minifloat) table() *[256]float64 {
	var values [256]float64
	for code := range values {
		values[code] = f.value(uint16(code))
	}
	return &values
}
