package gates

import (
	"math"
	"testing"
)

// The candidate's time never contradicts the speedup next to it, whatever the two medians say, in simulated runs with much noise.
func TestCandidateTimeHasTheSignOfTheSpeedup(t *testing.T) {
	rows, apart := 0, 0
	for _, ratio := range []float64{0.6, 0.95, 0.99, 1, 1.002, 1.01, 1.3, 3} {
		for _, rounds := range []int{6, 12} {
			e := sanitized()
			e.Performance, e.Shapes = machine{model: heavy, ratio: ratio, blocks: 20}.measured(newRand(3, uint64(rounds)), rounds).Performance, e.Shapes[:1]
			for _, c := range judgeQuickly(parsePolicy(t, gatePolicy(gate10)), e).Comparisons {
				if !c.Speedup.Known() {
					continue
				}
				rows++
				if (c.Baseline.P50-c.CandidateTime())*c.Speedup.Value < 0 || math.Abs(c.Baseline.P50/c.CandidateTime()-1-c.Speedup.Value) > 1e-9 {
					t.Errorf("%v → %v with a speedup of %v", c.Baseline.P50, c.CandidateTime(), c.Speedup.Value)
				}
				if (c.Baseline.P50-c.Candidate.P50)*c.Speedup.Value < 0 {
					apart++
				}
			}
		}
	}
	if rows < 16 {
		t.Errorf("only %d rows", rows)
	}
	t.Logf("%d rows; in %d the two medians contradict the speedup", rows, apart)
}
