package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Numbers are in the order that comparing gives, to the bit.
func TestSortFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := map[string]func() float64{
		"offsets":    func() float64 { return rng.NormFloat64() / 100 },
		"few values": func() float64 { return float64(rng.IntN(5) - 2) },
		"any bits":   func() float64 { return math.Float64frombits(rng.Uint64()) },
		"one value":  func() float64 { return -0.25 },
		"ends and not": func() float64 {
			return []float64{math.Inf(-1), -math.MaxFloat64, -5e-324, 0, 5e-324, 1, math.Inf(1)}[rng.IntN(7)]
		},
	}
	for name, next := range draw {
		for _, n := range []int{0, 1, 2, 3, 100, 10000} {
			got := make([]float64, n)
			for i := range got {
				for got[i] = next(); math.IsNaN(got[i]); got[i] = next() {
				}
			}
			want := slices.Sorted(slices.Values(got))
			sortFloats(got)
			if !slices.Equal(got, want) {
				t.Errorf("%d of %s: not as comparing sorts them", n, name)
			}
		}
	}
	zeros := []float64{0, math.Copysign(0, -1), 1, -1} // equal by comparing, and in a fixed order here
	sortFloats(zeros)
	if text := fmt.Sprint(zeros); text != "[-1 -0 0 1]" {
		t.Error(text)
	}
}

func BenchmarkSortFloats(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 10000)
	for i := range values {
		values[i] = rng.NormFloat64() / 100
	}
	for name, sort := range map[string]func([]float64){"digits": sortFloats, "comparing": slices.Sort[[]float64]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sort(slices.Clone(values))
			}
		})
	}
}
