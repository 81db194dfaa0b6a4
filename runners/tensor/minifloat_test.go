package tensor

import (
	"fmt"
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A definition states a format as its standard does, independently of the code under test.
type definition struct {
	dtype    manifest.DType
	exponent int // bits
	mantissa int
	bias     int
	// special returns the meaning of a code with the highest exponent, and false if it is an
	// ordinary value.
	special func(mantissa int) (value float64, ok bool)
}

func ieeeSpecial(mantissa int) (float64, bool) {
	if mantissa == 0 {
		return math.Inf(1), true
	}
	return math.NaN(), true
}

func onlyAllOnesIsNaN(mantissa int) (float64, bool) { return math.NaN(), mantissa == 7 }

var definitions = []definition{
	{manifest.E4M3, 4, 3, 7, onlyAllOnesIsNaN},
	{manifest.E5M2, 5, 2, 15, ieeeSpecial},
	{manifest.F16, 5, 10, 15, ieeeSpecial},
	{manifest.BF16, 8, 7, 127, ieeeSpecial},
	{manifest.E2M1, 2, 1, 1, func(int) (float64, bool) { return 0, false }},
}

func (f definition) codes() int { return 2 << (f.exponent + f.mantissa) }

func (f definition) value(code int) float64 {
	mantissas := 1 << f.mantissa
	m := code % mantissas
	e := code / mantissas % (1 << f.exponent)
	sign := 1.0
	if code >= f.codes()/2 {
		sign = -1
	}
	if e == 1<<f.exponent-1 {
		if v, ok := f.special(m); ok {
			return sign * v
		}
	}
	fraction := float64(m) / float64(mantissas)
	if e == 0 {
		return sign * math.Pow(2, float64(1-f.bias)) * fraction
	}
	return sign * math.Pow(2, float64(e-f.bias)) * (1 + fraction)
}

func encodeOne(d manifest.DType, x float64) int {
	buf := make([]byte, d.Bytes(1))
	Encode(d, buf, []float64{x})
	code := 0
	for i, b := range buf {
		code |= int(b) << (8 * i)
	}
	return code
}

func decodeOne(d manifest.DType, code int) float64 {
	buf := make([]byte, d.Bytes(1))
	for i := range buf {
		buf[i] = byte(code >> (8 * i))
	}
	var x [1]float64
	Decode(d, x[:], buf)
	return x[0]
}

func same(a, b float64) bool {
	return a != a && b != b || math.Float64bits(a) == math.Float64bits(b)
}

func TestEveryCode(t *testing.T) {
	for _, f := range definitions {
		t.Run(string(f.dtype), func(t *testing.T) {
			nans := 0
			for code := range f.codes() {
				want := f.value(code)
				got := decodeOne(f.dtype, code)
				if !same(got, want) {
					t.Fatalf("code %#x decodes to %v, want %v", code, got, want)
				}
				if got != got {
					nans++
					continue
				}
				if math.IsInf(got, 0) && f.dtype == manifest.E5M2 {
					continue // saturates, see below
				}
				if back := encodeOne(f.dtype, got); back != code {
					t.Fatalf("code %#x decodes to %v, which encodes to %#x", code, got, back)
				}
			}
			if nans == 0 && f.dtype != manifest.E2M1 {
				t.Error("no NaN among the codes")
			}
		})
	}
}

// TestEveryTie checks that every tie between two neighbouring codes goes to the even one, and the
// next float64 on either side of the tie to the nearer one.
func TestEveryTie(t *testing.T) {
	for _, f := range definitions {
		t.Run(string(f.dtype), func(t *testing.T) {
			ties := 0
			for code := range f.codes()/2 - 1 {
				low, high := f.value(code), f.value(code+1)
				if math.IsInf(high, 0) || high != high {
					break
				}
				tie := (low + high) / 2
				even := code + code%2
				for _, sign := range []struct {
					factor float64
					bit    int
				}{{1, 0}, {-1, f.codes() / 2}} {
					for _, c := range []struct {
						x    float64
						want int
					}{
						{tie, even},
						{math.Nextafter(tie, 0), code},
						{math.Nextafter(tie, math.Inf(1)), code + 1},
						{math.Nextafter(high, 0), code + 1},
						{math.Nextafter(low, math.Inf(1)), code},
					} {
						if got := encodeOne(f.dtype, sign.factor*c.x); got != c.want|sign.bit {
							t.Fatalf("%v (between codes %#x and %#x) encodes to %#x, want %#x",
								sign.factor*c.x, code, code+1, got, c.want|sign.bit)
						}
					}
				}
				ties++
			}
			if least := f.codes()/2 - 2<<f.mantissa; ties < least {
				t.Errorf("%d ties tried, expected at least %d", ties, least)
			}
		})
	}
}

func TestEncodeMinifloat(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	negativeNaN := math.Copysign(nan, -1)
	for _, test := range []struct {
		d    manifest.DType
		x    float64
		want int
	}{
		{manifest.E4M3, 0, 0x00}, {manifest.E4M3, math.Copysign(0, -1), 0x80},
		{manifest.E4M3, 1, 0x38}, {manifest.E4M3, -1.5, 0xBC}, {manifest.E4M3, 0x1p-6, 0x08}, {manifest.E4M3, 0x1p-9, 0x01}, {manifest.E4M3, 0x1p-10, 0x00}, {manifest.E4M3, -0x1p-10, 0x80},
		{manifest.E4M3, 448, 0x7E}, {manifest.E4M3, 449, 0x7E}, {manifest.E4M3, 464, 0x7E}, {manifest.E4M3, 465, 0x7E}, {manifest.E4M3, 480, 0x7E}, {manifest.E4M3, 1e300, 0x7E},
		{manifest.E4M3, inf, 0x7E}, {manifest.E4M3, -inf, 0xFE}, {manifest.E4M3, nan, 0x7F}, {manifest.E4M3, negativeNaN, 0x7F},
		{manifest.E4M3, math.SmallestNonzeroFloat64, 0x00},

		{manifest.E5M2, 1, 0x3C}, {manifest.E5M2, -2, 0xC0}, {manifest.E5M2, 0x1p-16, 0x01}, {manifest.E5M2, 0x1p-17, 0x00},
		{manifest.E5M2, 57344, 0x7B}, {manifest.E5M2, 61439, 0x7B}, {manifest.E5M2, 61440, 0x7B}, {manifest.E5M2, 65536, 0x7B}, {manifest.E5M2, inf, 0x7B}, {manifest.E5M2, -inf, 0xFB},
		{manifest.E5M2, nan, 0x7E}, {manifest.E5M2, negativeNaN, 0x7E},

		{manifest.F16, 1, 0x3C00}, {manifest.F16, -2, 0xC000}, {manifest.F16, 0.333251953125, 0x3555}, {manifest.F16, 65504, 0x7BFF}, {manifest.F16, 0x1p-24, 0x0001},
		{manifest.F16, 65519.999, 0x7BFF}, {manifest.F16, 65520, 0x7C00}, {manifest.F16, -1e9, 0xFC00}, {manifest.F16, inf, 0x7C00}, {manifest.F16, nan, 0x7E00}, {manifest.F16, negativeNaN, 0x7E00},
		// Just above a tie, by less than float32 can represent: through float32 it would round
		// down.
		{manifest.F16, 1 + 0x1p-11 + 0x1p-40, 0x3C01}, {manifest.F16, 1 + 0x1p-11, 0x3C00},

		{manifest.BF16, 1, 0x3F80}, {manifest.BF16, -2, 0xC000}, {manifest.BF16, 3.140625, 0x4049}, {manifest.BF16, math.MaxFloat32, 0x7F80}, {manifest.BF16, -inf, 0xFF80}, {manifest.BF16, nan, 0x7FC0},
		{manifest.BF16, 0x1p-133, 0x0001}, {manifest.BF16, 0x1p-134, 0x0000}, {manifest.BF16, 1 + 0x1p-8 + 0x1p-40, 0x3F81},

		{manifest.E2M1, -0.25, 0x8}, {manifest.E2M1, 0.26, 0x1}, {manifest.E2M1, 2.5, 0x4}, {manifest.E2M1, -3, 0xD}, {manifest.E2M1, 5, 0x6}, {manifest.E2M1, 5.1, 0x7}, {manifest.E2M1, -100, 0xF},
		{manifest.E2M1, inf, 0x7}, {manifest.E2M1, nan, 0x7},
		{manifest.Int4, -8, 0x8}, {manifest.Int4, -100, 0x8}, {manifest.Int4, -1, 0xF}, {manifest.Int4, 7, 0x7}, {manifest.Int4, 99, 0x7}, {manifest.Int4, 2.5, 0x2}, {manifest.Int4, nan, 0},
	} {
		t.Run(fmt.Sprintf("%s %v", test.d, test.x), func(t *testing.T) {
			if got := encodeOne(test.d, test.x); got != test.want {
				t.Errorf("Encode(%v) = %#x, want %#x", test.x, got, test.want)
			}
		})
	}
}

// FuzzEncodeE4M3 compares with the slowest possible encoder, which tries every code.
func FuzzEncodeE4M3(f *testing.F) {
	for _, x := range []float64{0, 1, -1, 448, 464, 0x1p-10, 0x1.8p-9, 0.1, -3.3, 17, 1e300, 5e-324, math.Inf(-1), math.NaN()} {
		f.Add(math.Float64bits(x))
	}
	def := definitions[0]
	f.Fuzz(func(t *testing.T, word uint64) {
		x := math.Float64frombits(word)
		code := encodeOne(manifest.E4M3, x)
		got := decodeOne(manifest.E4M3, code)
		if x != x {
			if got == got {
				t.Fatalf("NaN %#x encodes to %v", word, got)
			}
			return
		}
		target := min(max(x, -448), 448)
		for other := range def.codes() {
			v := def.value(other)
			if v != v {
				continue
			}
			mine, its := math.Abs(got-target), math.Abs(v-target)
			if its < mine {
				t.Fatalf("%v encodes to %v (%#x), but %v (%#x) is nearer", x, got, code, v, other)
			}
			if its == mine && v != got && code%2 == 1 {
				t.Fatalf("%v is a tie and encodes to the odd code %#x", x, code)
			}
		}
	})
}
