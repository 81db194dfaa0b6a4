package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// guardShare is the share of a race's error rate for proofs about guards.
const guardShare = 0.2

// A guard removes an arm from the race if the policy's guard would defer it: the rounds prove that the arm is
// slower than the incumbent on a shape, by more than the policy allows. Without a guard, the gate would have
// to judge and defer one such candidate after the other.
type guard struct {
	limits   map[string]float64 // the smallest incumbent/candidate, by shape
	interims []int
	shares   []float64 // of the proof about one arm on one shape, by interim analysis
	plan     *stats.ResamplePlan
	seen     map[string]map[string]*stats.Sample // by arm and shape
}

// newGuard prepares the proofs. Without limits, the guard refuses nothing.
func newGuard(limits map[string]float64, opt RaceOptions, plan *stats.ResamplePlan) *guard {
	interims := interimsUpTo(max(opt.MaxRounds, firstInterim))
	return &guard{
		limits: limits, interims: interims, shares: spend(opt.Delta/float64(max(opt.Arms, 1)*max(len(limits), 1)), interims), plan: plan,
		seen: map[string]map[string]*stats.Sample{},
	}
}

// open reports whether an arm seems to be slower than the policy's guard allows, and whether more rounds may
// prove this.
func (g *guard) open(id string) bool {
	for shape, sample := range g.seen[id] {
		sum := 0.0
		for _, round := range sample.Rounds {
			sum += math.Log(round[0])
		}
		if n := len(sample.Rounds); n < g.interims[len(g.interims)-1] && sum/float64(n) < math.Log(g.limits[shape]) {
			return true
		}
	}
	return false
}

// refuse adds the speedups of an arm in a round. It returns the reason why the policy would defer the arm, or
// nil if this is not proven.
func (g *guard) refuse(id string, speedups map[string]float64) *arm.Refusal {
	for _, shape := range slices.Sorted(maps.Keys(g.limits)) {
		ratio, ok := speedups[shape]
		if !ok || !(ratio > 0) {
			continue
		}
		if g.seen[id] == nil {
			g.seen[id] = map[string]*stats.Sample{}
		}
		if g.seen[id][shape] == nil {
			g.seen[id][shape] = &stats.Sample{}
		}
		sample := g.seen[id][shape]
		sample.Rounds = append(sample.Rounds, []float64{ratio})
		interim := slices.Index(g.interims, len(sample.Rounds))
		if interim < 0 {
			continue
		}
		var incumbent stats.Sample
		for range sample.Rounds {
			incumbent.Rounds = append(incumbent.Rounds, []float64{1})
		}
		d, err := g.plan.MeanRatio(*sample, incumbent)
		if err == nil && d.PBelow(g.limits[shape]) <= g.shares[interim] {
			return &arm.Refusal{
				Gate: gates.GatePerformance, Reason: gates.ReasonRegression,
				Text: fmt.Sprintf("speedup %s on %s, proven in %d rounds (the policy asks for at least %s)", number.Speedup(d.Estimate-1), shape, d.Rounds, number.Percent(g.limits[shape]-1)),
			}
		}
	}
	return nil
}
