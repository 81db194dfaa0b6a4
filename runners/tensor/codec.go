package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

var le = binary.LittleEndian

// Encode writes src into dst as elements of d, little endian. All rounding is to nearest, ties to
// even.
//
//   - e4m3, e5m2, e2m1: a value that is too large, infinity included, becomes the largest finite
//     value (CUDA's __NV_SATFINITE);
//   - f16, bf16, f32: a value that is too large becomes an infinity, as in IEEE 754;
//   - integers: a value that is too large becomes the nearest limit, and NaN becomes 0.
//
// NaN stays a NaN in every floating format except e2m1, and never becomes the NaN that Poison
// writes. Encode panics unless len(dst) is d.Bytes(len(src)).
func Encode(d manifest.DType, dst []byte, src []float64) {
	check(d, len(dst), len(src))
	switch d {
	case manifest.E4M3:
		encode8(&e4m3, dst, src)
	case manifest.E5M2:
		encode8(&e5m2, dst, src)
	case manifest.F16:
		encode16(&f16, dst, src)
	case manifest.BF16:
		encode16(&bf16, dst, src)
	case manifest.F32:
		for i, x := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(quiet(x))))
		}
	case manifest.F64:
		for i, x := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(quiet(x)))
		}
	case manifest.I8:
		for i, x := range src {
			dst[i] = byte(int8(integer(x, math.MinInt8, math.MaxInt8)))
		}
	case manifest.U8:
		for i, x := range src {
			dst[i] = byte(integer(x, 0, math.MaxUint8))
		}
	case manifest.I32:
		for i, x := range src {
			le.PutUint32(dst[4*i:], uint32(int32(integer(x, math.MinInt32, math.MaxInt32))))
		}
	case manifest.I64:
		for i, x := range src {
			le.PutUint64(dst[8*i:], uint64(integer64(x)))
		}
	case manifest.I16:
		for i, x := range src {
			le.PutUint16(dst[2*i:], uint16(int16(integer(x, math.MinInt16, math.MaxInt16))))
		}
	case manifest.U16:
		for i, x := range src {
			le.PutUint16(dst[2*i:], uint16(integer(x, 0, math.MaxUint16)))
		}
	case manifest.U32:
		for i, x := range src {
			le.PutUint32(dst[4*i:], uint32(integer(x, 0, math.MaxUint32)))
		}
	case manifest.U64:
		for i, x := range src {
			le.PutUint64(dst[8*i:], unsigned64(x))
		}
	case manifest.Bool:
		for i, x := range src {
			dst[i] = byte(integer(x, 0, 1))
		}
	case manifest.Int4:
		for i, x := range src {
			nibble(dst, i, byte(integer(x, -8, 7)))
		}
	case manifest.E2M1:
		for i, x := range src {
			nibble(dst, i, byte(e2m1.code(x)))
		}
	}
}

// nibble writes half a byte, the low half first.
func nibble(dst []byte, i int, code byte) {
	if i%2 == 0 {
		dst[i/2] = code & 0xF
	} else {
		dst[i/2] |= code << 4
	}
}

// Decode writes the values of the elements in src into dst. It panics unless len(src) is
// d.Bytes(len(dst)).
func Decode(d manifest.DType, dst []float64, src []byte) {
	check(d, len(src), len(dst))
	switch d {
	case manifest.E4M3:
		decode8(e4m3Values, dst, src)
	case manifest.E5M2:
		decode8(e5m2Values, dst, src)
	case manifest.F16:
		for i := range dst {
			dst[i] = f16.value(le.Uint16(src[2*i:]))
		}
	case manifest.BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16))
		}
	case manifest.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(src[4*i:])))
		}
	case manifest.F64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(src[8*i:]))
		}
	case manifest.I8:
		for i := range dst {
			dst[i] = float64(int8(src[i]))
		}
	case manifest.U8:
		for i := range dst {
			dst[i] = float64(src[i])
		}
	case manifest.I32:
		for i := range dst {
			dst[i] = float64(int32(le.Uint32(src[4*i:])))
		}
	case manifest.I64:
		for i := range dst {
			dst[i] = float64(int64(le.Uint64(src[8*i:])))
		}
	case manifest.I16:
		for i := range dst {
			dst[i] = float64(int16(le.Uint16(src[2*i:])))
		}
	case manifest.U16:
		for i := range dst {
			dst[i] = float64(le.Uint16(src[2*i:]))
		}
	case manifest.U32:
		for i := range dst {
			dst[i] = float64(le.Uint32(src[4*i:]))
		}
	case manifest.U64:
		for i := range dst {
			dst[i] = float64(le.Uint64(src[8*i:]))
		}
	case manifest.Bool:
		for i := range dst {
			dst[i] = float64(src[i])
		}
	case manifest.Int4:
		for i := range dst {
			dst[i] = float64(int8(src[i/2]>>(i%2*4)<<4) >> 4)
		}
	case manifest.E2M1:
		for i := range dst {
			dst[i] = e2m1.value(uint16(src[i/2] >> (i % 2 * 4) & 0xF))
		}
	}
}

// Element returns the bytes of one element; of a packed format, a byte with the element in its low half.
func Element(d manifest.DType, src []byte, i int) []byte {
	if d.Packed() {
		return []byte{src[i/2] >> (i % 2 * 4) & 0xF}
	}
	return src[i*d.Size() : (i+1)*d.Size()]
}

func encode8(f *minifloat, dst []byte, src []float64) {
	for i, x := range src {
		dst[i] = byte(f.code(x))
	}
}

func encode16(f *minifloat, dst []byte, src []float64) {
	for i, x := range src {
		le.PutUint16(dst[2*i:], f.code(x))
	}
}

func decode8(values *[256]float64, dst []float64, src []byte) {
	for i, code := range src {
		dst[i] = values[code]
	}
}

// quiet replaces every NaN by the standard one. Otherwise a payload in the input could come out as
// poison.
func quiet(x float64) float64 {
	if x != x {
		return math.NaN()
	}
	return x
}

// integer rounds x and clamps it to limits, which must be exact in float64.
func integer(x, least, most float64) int64 {
	switch {
	case x >= most:
		return int64(most)
	case x <= least:
		return int64(least)
	case x != x:
		return 0
	}
	return int64(math.RoundToEven(x))
}

func integer64(x float64) int64 {
	switch {
	case x != x:
		return 0
	case x >= 1<<63: // float64 cannot represent 2⁶³ − 1
		return math.MaxInt64
	case x < -1<<63:
		return math.MinInt64
	}
	return int64(math.RoundToEven(x))
}

func unsigned64(x float64) uint64 {
	switch {
	case x != x || x <= 0:
		return 0
	case x >= 1<<64:
		return math.MaxUint64
	}
	return uint64(math.RoundToEven(x))
}

func check(d manifest.DType, bytes, elements int) {
	if bytes != d.Bytes(elements) {
		panic(fmt.Sprintf("tensor: %d bytes for %d elements of %s, want %d", bytes, elements, string(d), d.Bytes(elements)))
	}
}
