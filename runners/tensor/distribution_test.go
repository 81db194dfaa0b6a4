package tensor

import (
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// TestPeaksOverflowANaiveExponential checks that every row of peaks has one element at which a
// naive exponential overflows in f32, and a kernel that subtracts the maximum does not. Sums and
// products of such rows stay within f16.
func TestPeaksOverflowANaiveExponential(t *testing.T) {
	const rows, columns = 50, 37
	for name, values := range map[string][]float64{
		"matrix": fill(distribution.Peaks, 5, "x", rows, columns),
		"batch":  fill(distribution.Peaks, 5, "x", 5, rows/5, columns),
	} {
		places := map[int]bool{}
		for row := range rows {
			peaks, naive, sum, squares := 0, float32(0), 0.0, 0.0
			for i, x := range values[row*columns : (row+1)*columns] {
				if x == peak {
					peaks++
					places[i] = true
				}
				naive += float32(math.Exp(x))
				sum += x
				squares += x * x
			}
			if peaks != 1 || !math.IsInf(float64(naive), 1) || sum > 65504 || squares > 65504 {
				t.Errorf("%s, row %d: %d peaks, exponentials sum to %v, squares to %v", name, row, peaks, naive, squares)
			}
		}
		if len(places) < columns/2 {
			t.Errorf("%s: the peaks stand in %d places only", name, len(places))
		}
	}
	vector := fill(distribution.Peaks, 5, "x", columns)
	peaks := 0
	for _, x := range vector {
		if x == peak {
			peaks++
		}
	}
	if peaks != 1 {
		t.Errorf("a vector has %d peaks", peaks)
	}
	for _, shape := range [][]int{nil, {1}, {1, 1}, {3, 0, 4}, {3, 4, 0}} {
		fill(distribution.Peaks, 0, "x", shape...)
	}
}

// TestEdgesHaveDenormalsOfEveryFormat checks that edges has both zeros and denormals in every
// floating format, and no infinity.
func TestEdgesHaveDenormalsOfEveryFormat(t *testing.T) {
	values := fill(distribution.Edges, 1, "x", 64, 64)
	least := map[manifest.DType]float64{
		manifest.E4M3: 0x1p-6, manifest.E5M2: 0x1p-14, manifest.F16: 0x1p-14, manifest.BF16: 0x1p-126, manifest.F32: 0x1p-126, manifest.F64: 0x1p-1022,
	}
	for d, normal := range least {
		buf := make([]byte, len(values)*d.Size())
		Encode(d, buf, values)
		kept := make([]float64, len(values))
		Decode(d, kept, buf)
		zeros, negative, denormals, ordinary := 0, 0, 0, 0
		for _, x := range kept {
			switch {
			case math.IsInf(x, 0) || x != x:
				t.Fatalf("%s: %v", d, x)
			case x == 0 && math.Signbit(x):
				negative++
			case x == 0:
				zeros++
			case math.Abs(x) < normal:
				denormals++
			default:
				ordinary++
			}
		}
		if n := len(values); zeros < n/16 || negative < n/16 || denormals < n/50 || ordinary < n/8 {
			t.Errorf("%s: %d zeros, %d negative ones, %d denormals, %d others of %d", d, zeros, negative, denormals, ordinary, n)
		}
	}
}

// TestInfinitiesAreAllowedByTheProblem checks that infinities occur only where the problem allows
// them.
func TestInfinitiesAreAllowedByTheProblem(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(`{version: 1, name: f, mode: cpu, entry: f, source: f.c,
  arguments: [{name: x, dtype: f32, access: in, shape: [N], infinities: true}, {name: y, dtype: f32, access: in, shape: [N]}, {name: z, dtype: f32, access: out, shape: [N]}],
  reference: {source: r.c, entry: r}, tolerance: {abs: 1}, shapes: {one: {N: 4096}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, dist := range distribution.All() {
		p, err := NewProblem(m, m.Shapes[0], nil, dist, 3)
		if err != nil {
			t.Fatal(err)
		}
		var up, down [2]int
		for k := range 2 {
			for _, x := range p.Args[k].Real {
				if math.IsInf(x, 1) {
					up[k]++
				}
				if math.IsInf(x, -1) {
					down[k]++
				}
			}
		}
		if want := dist == distribution.Infinite; (up[0] > 16) != want || (down[0] > 16) != want || up[1]+down[1] > 0 {
			t.Errorf("%s: x has %d and %d infinities, y has %d", dist, up[0], down[0], up[1]+down[1])
		}
	}
}
