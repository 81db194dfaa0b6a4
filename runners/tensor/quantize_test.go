package tensor

import (
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

func quantize(d manifest.DType, values []float64, shape, axes []int) (Quantized, error) {
	g, err := newGrouping(shape, axes)
	if err != nil {
		return Quantized{}, err
	}
	return Quantize(d, values, g)
}

func TestQuantizeGroupsByAxis(t *testing.T) {
	shape := []int{2, 3, 4, 5}
	values := fill(distribution.Normal, 0, "q", shape...)
	for _, test := range []struct {
		name   string
		axes   []int
		groups int
		group  func(b, h, s, d int) int
	}{
		{"whole tensor", nil, 1, func(b, h, s, d int) int { return 0 }},
		{"per head", []int{1}, 3, func(b, h, s, d int) int { return h }},
		{"per batch and head", []int{0, 1}, 6, func(b, h, s, d int) int { return b*3 + h }},
		{"per channel", []int{3}, 5, func(b, h, s, d int) int { return d }},
		{"per head and channel", []int{1, 3}, 15, func(b, h, s, d int) int { return h*5 + d }},
		{"per row", []int{0, 1, 2}, 24, func(b, h, s, d int) int { return (b*3+h)*4 + s }},
		{"per element", []int{0, 1, 2, 3}, 120, func(b, h, s, d int) int { return ((b*3+h)*4+s)*5 + d }},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := quantize(manifest.E4M3, values, shape, test.axes)
			if err != nil {
				t.Fatal(err)
			}
			absmax := make([]float64, test.groups)
			group := make([]int, len(values))
			i := 0
			for b := range 2 {
				for h := range 3 {
					for s := range 4 {
						for d := range 5 {
							group[i] = test.group(b, h, s, d)
							absmax[group[i]] = max(absmax[group[i]], math.Abs(values[i]))
							i++
						}
					}
				}
			}
			if len(q.Scales) != test.groups {
				t.Fatalf("%d scales, want %d", len(q.Scales), test.groups)
			}
			for g, scale := range q.Scales {
				if want := float64(float32(absmax[g]) / 448); scale != want {
					t.Errorf("scale %d is %v, want %v", g, scale, want)
				}
			}
			decoded := make([]float64, len(values))
			Decode(manifest.E4M3, decoded, q.Data)
			for i, x := range values {
				scale := q.Scales[group[i]]
				if want := decoded[i] * scale; q.Dequantized[i] != want {
					t.Errorf("element %d: dequantised %v, want %v", i, q.Dequantized[i], want)
				}
				// Half a step of a 3-bit mantissa, or of the subnormals.
				if off := math.Abs(q.Dequantized[i] - x); off > max(math.Abs(x)/16, scale*0x1p-10)*(1+1e-6) {
					t.Errorf("element %d: %v became %v", i, x, q.Dequantized[i])
				}
			}
		})
	}
}

func TestQuantizeMapsTheLargestToTheLargest(t *testing.T) {
	for _, test := range []struct {
		d       manifest.DType
		largest float64
	}{{manifest.E4M3, 448}, {manifest.E5M2, 57344}, {manifest.I8, 127}} {
		t.Run(string(test.d), func(t *testing.T) {
			for seed := range uint64(300) {
				for _, dist := range []distribution.Kind{distribution.Normal, distribution.Large, distribution.Constant} {
					values := fill(dist, seed, "x", 33)
					at := 0
					for i, x := range values {
						if math.Abs(x) > math.Abs(values[at]) {
							at = i
						}
					}
					q, err := quantize(test.d, values, []int{33}, nil)
					if err != nil {
						t.Fatal(err)
					}
					if float64(float32(q.Scales[0])) != q.Scales[0] {
						t.Fatalf("seed %d: scale %v is no float32", seed, q.Scales[0])
					}
					var top [1]float64
					Decode(test.d, top[:], q.Data[at:at+1])
					if want := math.Copysign(test.largest, values[at]); top[0] != want {
						t.Fatalf("seed %d, %s: largest value %v maps to %v, want %v", seed, dist, values[at], top[0], want)
					}
				}
			}
		})
	}
}

func TestQuantizeExtremes(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		scale  float64
		back   []float64
	}{
		{"zeros", []float64{0, math.Copysign(0, -1)}, 1, []float64{0, math.Copysign(0, -1)}},
		{"exact", []float64{448, -1, 0.5}, 1, []float64{448, -1, 0.5}},
		{"subnormal scale", []float64{0x1p-126, -0x1p-128}, 0x1p-126, []float64{0x1p-126, -0x1p-128}},
		{"below float32", []float64{1e-60, -1e-70}, 1, []float64{0, math.Copysign(0, -1)}},
		{"largest float32", []float64{math.MaxFloat32, 0}, float64(float32(math.MaxFloat32) / 448), []float64{float64(float32(math.MaxFloat32)/448) * 448, 0}},
		{"empty", nil, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := quantize(manifest.E4M3, test.values, []int{len(test.values)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if q.Scales[0] != test.scale {
				t.Errorf("scale %v, want %v", q.Scales[0], test.scale)
			}
			for i, want := range test.back {
				if !same(q.Dequantized[i], want) {
					t.Errorf("%v came back as %v, want %v", test.values[i], q.Dequantized[i], want)
				}
			}
		})
	}
}

func TestQuantizeRefuses(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1, 1}
	for _, test := range []struct {
		name   string
		d      manifest.DType
		values []float64
		shape  []int
		axes   []int
		says   string
	}{
		{"wide format", manifest.F16, ones, []int{6}, nil, "e4m3, e5m2, i8"},
		{"wrong length", manifest.E4M3, ones, []int{2, 2}, nil, "6 values"},
		{"negative shape", manifest.E4M3, ones, []int{-6}, nil, "axis 0"},
		{"axis too high", manifest.E4M3, ones, []int{2, 3}, []int{2}, "0 to 1"},
		{"negative axis", manifest.E4M3, ones, []int{2, 3}, []int{-1}, "0 to 1"},
		{"axis twice", manifest.E4M3, ones, []int{2, 3}, []int{1, 1}, "each once"},
		{"axes descending", manifest.E4M3, ones, []int{2, 3}, []int{1, 0}, "ascending"},
		{"NaN", manifest.E4M3, []float64{0, 0, math.NaN(), 0}, []int{2, 2}, []int{0}, "value 2 is NaN"},
		{"infinity", manifest.I8, []float64{math.Inf(-1)}, []int{1}, nil, "value 0 is -Inf"},
		{"beyond float32", manifest.E5M2, []float64{1, 1e39}, []int{2}, nil, "value 1 is 1e+39"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := quantize(test.d, test.values, test.shape, test.axes)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}
