package gates

import (
	"math"
	"testing"
)

// TestRoundSpeedups checks that a round's speedup is the median of its undisturbed pairs, and that
// every kind of input has the same weight.
func TestRoundSpeedups(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
	plain := Series{Shape: "plain", Order: "bca bca bca", Nanos: []float64{200, 100, 200, 300, 100, 300, 900, 100, 900}}
	disturbed := plain
	disturbed.Shape, disturbed.Disturbed = "disturbed", []int{7} // the candidate of the third block
	lost := Series{Shape: "lost", Order: "bca", Nanos: []float64{200, 100, 200}, Disturbed: []int{0}}
	// The kinds take turns: ratios 1 and 4, and their geometric mean.
	kinds := Series{
		Shape: "kinds", Order: "bca bca bca bca", Nanos: []float64{100, 100, 100, 400, 100, 400, 100, 100, 100, 400, 100, 400},
		Distributions: []string{"normal", "large"},
	}
	got := RoundSpeedups(Round{Series: []Series{plain, disturbed, lost, kinds}})
	if !near(got["plain"], 3) || !near(got["disturbed"], 2.5) || !near(got["kinds"], 2) {
		t.Errorf("%v, want 3, 2.5 and 2", got)
	}
	if _, ok := got["lost"]; ok || len(got) != 3 {
		t.Errorf("%v has a shape without an undisturbed pair", got)
	}
}
