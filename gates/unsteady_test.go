package gates

import (
	"math/rand/v2"
	"testing"
)

// Groups and drifts are found where they are, and not in plain noise.
func TestUnsteadySamples(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, at func(i int) float64) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = at(i) + 0.003*r.NormFloat64()
		}
		return values
	}
	for range 200 {
		if apart, _, found := twoGroups(draw(60, func(int) float64 { return 0 })); found {
			t.Fatalf("noise has two groups, %v apart", apart)
		}
	}
	apart, slow, found := twoGroups(draw(60, func(i int) float64 { return 0.05 * float64(i%3/2) }))
	if !found || apart < 0.04 || apart > 0.06 || slow < 0.3 || slow > 0.37 {
		t.Errorf("two groups: %v apart, %v slow, %v", apart, slow, found)
	}
	rounds := func(step float64) (all [][]float64) {
		for i := range 12 {
			all = append(all, draw(20, func(int) float64 { return step * float64(i) }))
		}
		return all
	}
	if change, found := drift(rounds(0.004)); !found || change < 0.02 || change > 0.05 {
		t.Errorf("a drift of %v, %v", change, found)
	}
	if change, found := drift(rounds(0)); found {
		t.Errorf("noise drifts by %v", change)
	}
}
