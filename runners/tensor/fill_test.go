package tensor

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

func fill(dist distribution.Kind, seed uint64, stream string, shape ...int) []float64 {
	n, err := Elements(shape)
	if err != nil {
		panic(err)
	}
	values := make([]float64, n)
	Fill(values, dist, seed, stream, shape)
	return values
}

// TestFillGolden pins the bits: evidence names a seed, and a repetition elsewhere must get the same
// inputs.
func TestFillGolden(t *testing.T) {
	for _, test := range []struct {
		dist   distribution.Kind
		seed   uint64
		stream string
		want   []float64
	}{
		{distribution.Normal, 0, "q", []float64{0x1.4cc4e791f27f3p-02, -0x1.f756c52211f3dp-01, -0x1.673db50616f35p+00, -0x1.2fe497b386p+00}},
		{distribution.Normal, 0, "k", []float64{0x1.dab5f7f59ed6ap+01, -0x1.2edfe51da0727p+00, -0x1.a7b7da079c627p+00, -0x1.860b9a61ec8f6p-02}},
		{distribution.Normal, 1, "q", []float64{-0x1.47e9547b4c70dp+00, -0x1.5640700c380c2p-01, 0x1.1334860d75dd4p+01, 0x1.84989a34bf5cp-01}},
		{distribution.Uniform, 0, "q", []float64{-0x1.7e586d3d861p-02, -0x1.19d7311049f8p-02, 0x1.21373bfdcddecp-02, 0x1.c4ef1b1c3d416p-01}},
		{distribution.Large, 2, "v", []float64{0x1.08e7a36576673p+02, 0x1.521e4a9b9cdfdp+03, -0x1.45f44e4b74fcfp+03, -0x1.13b2a46a2118bp+03}},
		{distribution.Constant, 0, "q", []float64{-0x1.ef34ad93b4dc6p+00, -0x1.ef34ad93b4dc6p+00, -0x1.ef34ad93b4dc6p+00, -0x1.ef34ad93b4dc6p+00}},
		{distribution.Zero, 0, "q", []float64{0, 0, 0, 0}},
		{distribution.Ones, 0, "q", []float64{1, 1, 1, 1}},
	} {
		t.Run(string(test.dist), func(t *testing.T) {
			got := fill(test.dist, test.seed, test.stream, 1, 2, 3, 4)[:4]
			if !slices.Equal(got, test.want) {
				t.Errorf("%x, want %x", got, test.want)
			}
		})
	}
	t.Run("hashes", func(t *testing.T) {
		for dist, want := range map[distribution.Kind]string{distribution.Normal: "54bdf071e8a67af3", distribution.Uniform: "be0f1fe520468aa2", distribution.Dominant: "8991d59ce353c766", distribution.Large: "70881ed0b5ddfe74",
			distribution.Peaks: "d157ee982ba95cd0", distribution.Edges: "dfa1e208f8b488ec", distribution.Infinite: "3994919b1a7d2bef"} {
			values := fill(dist, 0, "q", 1, 8, 128, 64)
			buf := make([]byte, 8*len(values))
			Encode(manifest.F64, buf, values)
			if got := fmt.Sprintf("%x", sha256.Sum256(buf))[:16]; got != want {
				t.Errorf("%s: %s, want %s", dist, got, want)
			}
		}
	})
}

func TestFillDependsOnEverything(t *testing.T) {
	for _, dist := range []distribution.Kind{distribution.Normal, distribution.Uniform, distribution.Dominant, distribution.Large, distribution.Constant} {
		t.Run(string(dist), func(t *testing.T) {
			base := fill(dist, 7, "q", 4, 16)
			if !slices.Equal(base, fill(dist, 7, "q", 4, 16)) {
				t.Error("the same call gives other values")
			}
			for name, other := range map[string][]float64{
				"seed":   fill(dist, 8, "q", 4, 16),
				"stream": fill(dist, 7, "k", 4, 16),
				"shape":  fill(dist, 7, "q", 16, 4),
			} {
				for i := range base {
					if base[i] == other[i] {
						t.Errorf("another %s gives the same value at %d", name, i)
						break
					}
				}
			}
		})
	}
}

func moments(values []float64) (mean, sigma, kurtosis float64) {
	n := float64(len(values))
	for _, x := range values {
		mean += x / n
	}
	var second, fourth float64
	for _, x := range values {
		square := (x - mean) * (x - mean)
		second += square / n
		fourth += square * square / n
	}
	return mean, math.Sqrt(second), fourth / second / second
}

func TestFillMoments(t *testing.T) {
	for _, test := range []struct {
		dist            distribution.Kind
		sigma, kurtosis float64
	}{
		{distribution.Normal, 1, 3},
		{distribution.Large, 8, 3},
		{distribution.Uniform, 1 / math.Sqrt(3), 1.8},
	} {
		t.Run(string(test.dist), func(t *testing.T) {
			// The tolerances are about five standard errors at this size. The seed fixes the
			// values.
			mean, sigma, kurtosis := moments(fill(test.dist, 3, "x", 200001))
			if math.Abs(mean) > 0.012*test.sigma {
				t.Errorf("mean %v", mean)
			}
			if math.Abs(sigma/test.sigma-1) > 0.008 {
				t.Errorf("sigma %v, want %v", sigma, test.sigma)
			}
			if math.Abs(kurtosis-test.kurtosis) > 0.06 {
				t.Errorf("kurtosis %v, want %v", kurtosis, test.kurtosis)
			}
		})
	}
}

func TestNormalTails(t *testing.T) {
	beyond := map[float64]int{1: 0, 2: 0, 3: 0, 4: 0}
	const n = 400000
	for _, x := range fill(distribution.Normal, 5, "x", n) {
		for limit := range beyond {
			if math.Abs(x) > limit {
				beyond[limit]++
			}
		}
	}
	for limit, count := range beyond {
		expected := n * math.Erfc(limit/math.Sqrt2)
		if math.Abs(float64(count)-expected) > 5*math.Sqrt(expected) {
			t.Errorf("%d of %d beyond %v sigma, expected about %.0f", count, n, limit, expected)
		}
	}
}

func TestNeighboursAreUncorrelated(t *testing.T) {
	values := fill(distribution.Normal, 9, "x", 100000)
	for _, lag := range []int{1, 2, 64} {
		var sum float64
		for i := lag; i < len(values); i++ {
			sum += values[i] * values[i-lag]
		}
		if r := sum / float64(len(values)); math.Abs(r) > 0.016 {
			t.Errorf("correlation %v at lag %d", r, lag)
		}
	}
}

func TestUniformStaysInside(t *testing.T) {
	values := fill(distribution.Uniform, 1, "x", 100000)
	if least, most := slices.Min(values), slices.Max(values); least < -1 || most >= 1 || least > -0.999 || most < 0.999 {
		t.Errorf("uniform reaches from %v to %v", least, most)
	}
}

func TestConstantIsNeverNearZero(t *testing.T) {
	signs := map[bool]int{}
	for seed := range uint64(200) {
		values := fill(distribution.Constant, seed, "q", 3, 5)
		for _, x := range values {
			if x != values[0] {
				t.Fatalf("seed %d: %v and %v in one constant tensor", seed, values[0], x)
			}
		}
		if abs := math.Abs(values[0]); abs < 0.5 || abs > 2 {
			t.Errorf("seed %d: constant %v", seed, values[0])
		}
		signs[values[0] < 0]++
	}
	if len(signs) != 2 {
		t.Error("200 seeds gave one sign only")
	}
}

// largeRows returns, for each matrix, the rows whose sigma is about dominance.
func largeRows(values []float64, matrices, rows, columns int) [][]int {
	found := make([][]int, matrices)
	for m := range matrices {
		for r := range rows {
			start := (m*rows + r) * columns
			_, sigma, _ := moments(values[start : start+columns])
			if sigma > 3 {
				found[m] = append(found[m], r)
			}
		}
	}
	return found
}

func TestDominantRow(t *testing.T) {
	const batches, heads, rows, columns = 2, 4, 32, 64
	at := func(seed uint64, stream string) []int {
		t.Helper()
		var chosen []int
		for m, large := range largeRows(fill(distribution.Dominant, seed, stream, batches, heads, rows, columns), batches*heads, rows, columns) {
			if len(large) != 1 {
				t.Fatalf("seed %d, %s, matrix %d: large rows %v, want one", seed, stream, m, large)
			}
			chosen = append(chosen, large[0])
		}
		return chosen
	}
	q, k := at(0, "q"), at(0, "k")
	if !slices.Equal(q, k) {
		t.Errorf("q is dominant in rows %v, k in rows %v", q, k)
	}
	if slices.Equal(q, at(1, "q")) {
		t.Errorf("seeds 0 and 1 both choose rows %v", q)
	}
	if slices.Min(q) == slices.Max(q) {
		t.Errorf("every head chooses row %d", q[0])
	}
	wide := largeRows(fill(distribution.Dominant, 0, "v", batches, heads, rows, 2*columns), batches*heads, rows, 2*columns)
	for m := range wide {
		if !slices.Equal(wide[m], []int{q[m]}) {
			t.Errorf("matrix %d: rows %v with wider rows, want [%d]", m, wide[m], q[m])
		}
	}
}

func TestDominantOfFewAxes(t *testing.T) {
	for _, shape := range [][]int{nil, {1}, {9}, {1, 1}, {3, 0, 4}, {3, 4, 0}} {
		fill(distribution.Dominant, 0, "x", shape...)
	}
	const n = 2000
	large := 0
	for seed := range uint64(n) {
		if math.Abs(fill(distribution.Dominant, seed, "x")[0]) > 4 {
			large++
		}
	}
	if expected := n * math.Erfc(4.0/dominance/math.Sqrt2); math.Abs(float64(large)-expected) > 5*math.Sqrt(expected) {
		t.Errorf("%d of %d dominant scalars exceed 4, expected about %.0f", large, n, expected)
	}
}

func TestFillOfEveryFormat(t *testing.T) {
	shape := []int{64, 64}
	draw := func(d manifest.DType, dist distribution.Kind) []float64 {
		values := make([]float64, 64*64)
		(&Arg{Name: "x", DType: d, Shape: shape, Scales: -1, Filling: manifest.Filling{Draw: dist, Scale: 1}}).fill(values, dist, 0)
		return values
	}
	for _, d := range manifest.DTypes() {
		for _, dist := range distribution.All() {
			if !d.Float() && dist == distribution.Infinite {
				continue // no manifest can ask for it
			}
			values := draw(d, dist)
			if d.Float() {
				if !slices.Equal(values, fill(dist, 0, "x", shape...)) {
					t.Errorf("%s %s: differs from Fill", d, dist)
				}
				continue
			}
			buf := make([]byte, d.Bytes(len(values)))
			Encode(d, buf, values)
			back := make([]float64, len(values))
			Decode(d, back, buf)
			for i := range values {
				if !same(values[i], back[i]) {
					t.Errorf("%s %s: %v is encoded as %v", d, dist, values[i], back[i])
					break
				}
			}
		}
	}
	if _, sigma, _ := moments(draw(manifest.I32, distribution.Normal)); math.Abs(sigma-16) > 1 {
		t.Errorf("normal i32 has sigma %v, want 16", sigma)
	}
	if values := draw(manifest.I8, distribution.Large); slices.Min(values) != -128 || slices.Max(values) != 127 {
		t.Errorf("large i8 reaches from %v to %v", slices.Min(values), slices.Max(values))
	}
	if values := draw(manifest.U8, distribution.Normal); slices.Max(values) < 32 {
		t.Errorf("normal u8 reaches %v only", slices.Max(values))
	}
	if values := draw(manifest.I8, distribution.Ones); slices.Min(values) != 1 || slices.Max(values) != 1 {
		t.Error("ones are not 1 as i8")
	}
}

func TestLogarithm(t *testing.T) {
	for x := 0x1p-104; x < 1; x *= 1.037 {
		if want := math.Log(x); math.Abs(logarithm(x)-want) > 1e-13*max(1, math.Abs(want)) {
			t.Errorf("logarithm(%v) = %v, want %v", x, logarithm(x), want)
		}
	}
}
