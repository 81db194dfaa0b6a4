package tensor

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

func TestEncodeWideFormats(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		d    manifest.DType
		x    float64
		want []byte
	}{
		{manifest.F32, 1, []byte{0, 0, 0x80, 0x3F}},
		{manifest.F32, 1 + 0x1p-24, []byte{0, 0, 0x80, 0x3F}},
		{manifest.F32, 1 + 0x1.8p-23, []byte{2, 0, 0x80, 0x3F}},
		{manifest.F32, 0x1p-149, []byte{1, 0, 0, 0}},
		{manifest.F32, 1e39, []byte{0, 0, 0x80, 0x7F}},
		{manifest.F64, -2.5, []byte{0, 0, 0, 0, 0, 0, 4, 0xC0}},
		{manifest.F64, -inf, []byte{0, 0, 0, 0, 0, 0, 0xF0, 0xFF}},
		{manifest.I8, 2.5, []byte{2}}, {manifest.I8, 3.5, []byte{4}}, {manifest.I8, -0.5, []byte{0}}, {manifest.I8, -1.5, []byte{0xFE}},
		{manifest.I8, 127.6, []byte{127}}, {manifest.I8, 1e9, []byte{127}}, {manifest.I8, -200, []byte{0x80}}, {manifest.I8, inf, []byte{127}}, {manifest.I8, -inf, []byte{0x80}}, {manifest.I8, nan, []byte{0}},
		{manifest.U8, -3, []byte{0}}, {manifest.U8, 254.5, []byte{254}}, {manifest.U8, 255.5, []byte{255}}, {manifest.U8, 300, []byte{255}}, {manifest.U8, nan, []byte{0}},
		{manifest.I32, 1 << 31, []byte{0xFF, 0xFF, 0xFF, 0x7F}}, {manifest.I32, -1 << 31, []byte{0, 0, 0, 0x80}}, {manifest.I32, -inf, []byte{0, 0, 0, 0x80}}, {manifest.I32, -1, []byte{0xFF, 0xFF, 0xFF, 0xFF}},
		{manifest.I64, 1 << 63, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}}, {manifest.I64, -1 << 63, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}},
		{manifest.I64, inf, []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}}, {manifest.I64, -inf, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}},
		{manifest.I64, 4.5, []byte{4, 0, 0, 0, 0, 0, 0, 0}}, {manifest.I64, nan, make([]byte, 8)},
	} {
		t.Run(fmt.Sprintf("%s %v", test.d, test.x), func(t *testing.T) {
			got := make([]byte, test.d.Size())
			Encode(test.d, got, []float64{test.x})
			if !bytes.Equal(got, test.want) {
				t.Errorf("Encode(%v) = % x, want % x", test.x, got, test.want)
			}
		})
	}
}

func TestRoundTripOfExactValues(t *testing.T) {
	for _, test := range []struct {
		d      manifest.DType
		values []float64
	}{
		{manifest.F32, []float64{0, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, math.Inf(1), 0x1.abcdeep-100}},
		{manifest.F64, []float64{0, -math.Pi, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(-1)}},
		{manifest.I8, []float64{-128, -1, 0, 127}},
		{manifest.U8, []float64{0, 1, 255}},
		{manifest.I32, []float64{math.MinInt32, -1, 0, math.MaxInt32}},
		{manifest.I64, []float64{math.MinInt64, -1 << 53, -1, 0, 1 << 53}},
	} {
		t.Run(string(test.d), func(t *testing.T) {
			buf := make([]byte, len(test.values)*test.d.Size())
			Encode(test.d, buf, test.values)
			got := make([]float64, len(test.values))
			Decode(test.d, got, buf)
			for i, want := range test.values {
				if !same(got[i], want) {
					t.Errorf("%v came back as %v", want, got[i])
				}
			}
		})
	}
}

func TestNaNStaysNaNAndIsNeverPoison(t *testing.T) {
	nans := []float64{math.NaN(), math.Copysign(math.NaN(), -1)}
	for _, d := range manifest.DTypes() {
		if !d.Float() || d.Packed() {
			continue
		}
		poison := make([]byte, 8)
		Poison(d, poison)
		var fromPoison [1]float64
		Decode(d, fromPoison[:], poison[:d.Size()])
		for _, x := range append(nans, fromPoison[0]) {
			buf := make([]byte, d.Size())
			Encode(d, buf, []float64{x})
			var back [1]float64
			Decode(d, back[:], buf)
			if back[0] == back[0] {
				t.Errorf("%s: NaN became %v", d, back[0])
			}
			if countPoison(d, buf) != 0 {
				t.Errorf("%s: an encoded NaN is % x, which is poison", d, buf)
			}
		}
	}
}

// FuzzEncode checks that every format encodes every float64 without a panic, and exactly if the
// format has the value.
func FuzzEncode(f *testing.F) {
	f.Add(math.Float64bits(1.5))
	f.Add(math.Float64bits(-1e300))
	f.Add(math.Float64bits(math.NaN()))
	f.Fuzz(func(t *testing.T, word uint64) {
		x := math.Float64frombits(word)
		for _, d := range manifest.DTypes() {
			buf := make([]byte, d.Bytes(1))
			var once, twice [1]float64
			Encode(d, buf, []float64{x})
			Decode(d, once[:], buf)
			if d == manifest.I64 && math.Abs(once[0]) > 1<<53 {
				continue
			}
			Encode(d, buf, once[:])
			Decode(d, twice[:], buf)
			if !same(once[0], twice[0]) {
				t.Errorf("%s: %v rounds to %v, which rounds to %v", d, x, once[0], twice[0])
			}
		}
	})
}

// TestPackedFormats checks that two elements share a byte, the first in its low half, and that an
// odd count leaves half a byte unused.
func TestPackedFormats(t *testing.T) {
	for _, test := range []struct {
		d      manifest.DType
		values []float64
		want   []byte
	}{
		{manifest.Int4, []float64{1, -1, -8, 7, 5}, []byte{0xF1, 0x78, 0x05}},
		{manifest.E2M1, []float64{0.5, -6, 3, 0}, []byte{0xF1, 0x05}},
	} {
		got := bytes.Repeat([]byte{0xEE}, test.d.Bytes(len(test.values)))
		Encode(test.d, got, test.values)
		back := make([]float64, len(test.values))
		Decode(test.d, back, got)
		if !bytes.Equal(got, test.want) || !slices.Equal(back, test.values) {
			t.Errorf("%s: %v is encoded as %x, want %x, and comes back as %v", test.d, test.values, got, test.want, back)
		}
	}
}
