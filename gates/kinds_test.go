package gates

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// ofKinds is evidence of a kernel with another ratio on each kind of input.
func ofKinds(ratios []float64, seed uint64) *Evidence {
	r := newRand(9, seed)
	jitter := func() float64 { return math.Exp(0.003 * r.NormFloat64()) }
	e := quiet(1).measured(newRand(1, 1), 6)
	names := []string{"normal", "uniform", "dominant", "large", "constant"}[:len(ratios)]
	for i := range e.Performance.Rounds {
		s := inKinds(slices.Repeat([]float64{1}, 1), 20, jitter)
		s.Distributions = names
		at := 0
		for block := range 20 {
			for _, side := range "bcaacb" {
				if side == SideCandidate {
					s.Nanos[at] /= ratios[block%len(ratios)]
				}
				at++
			}
		}
		e.Performance.Rounds[i].Series = []Series{s}
	}
	return e
}

// One kind of input does not pay for the others.
func TestOneKindPaysForTheOthers(t *testing.T) {
	const target, guard = gate10, `{guard: {shapes: [mission], speedup: ">= -5%"}, pairs: 20, tails: none}`
	for _, c := range []struct {
		name    string
		ratios  []float64
		gate    string
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"all kinds gain alike", []float64{1.15, 1.15, 1.15, 1.15, 1.15}, target, Pass, "", "Proven"},
		{"all kinds gain much", []float64{1.5, 1.6, 2.5, 1.5, 1.7}, target, Pass, "", "Proven"},
		{"kinds around the target", []float64{1.13, 1.12, 1.12, 1.11, 1.14}, target, Pass, "", "Proven"},
		{"one kind gains", []float64{1, 1, 1, 1, 20}, target, Defer, ReasonTooSlow, "a kind of input counts for at most +15.4\u00a0% (constant gain more)"},
		{"two kinds gain", []float64{1, 1, 1, 2, 2}, target, Defer, ReasonTooSlow, "large and constant"},
		{"three kinds gain", []float64{1, 1, 2, 2, 2}, target, Defer, ReasonTooSlow, "dominant and large and constant"},
		{"one of two kinds gains", []float64{1, 1.5}, target, Defer, ReasonTooSlow, "uniform gain more"},
		{"one kind of a target loses", []float64{1.3, 1.3, 1.3, 1.3, 0.965}, `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20, tails: none}`, Defer, ReasonTooSlow, "but on constant inputs it is −3"},
		{"all kinds of a guard are within it", []float64{1, 0.98, 1.02, 0.99, 1}, guard, Pass, "", "Proven"},
		{"ordinary inputs lose what a special one gains", []float64{0.93, 0.93, 0.93, 0.93, 1.8}, guard, Defer, ReasonRegression, "(each kind of input must reach −5.0\u00a0%)"},
		{"one kind of a guard loses", []float64{1.1, 1.1, 1.1, 1.1, 0.9}, guard, Defer, ReasonRegression, "but on constant inputs it is −1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judged(t, c.gate, ofKinds(c.ratios, 1))
			expect(t, v, c.outcome, c.reason, c.says)
			row, slow := v.Comparisons[0], strings.Contains(c.says, " inputs it is ") || strings.Contains(c.says, "each kind of input")
			if (row.KindLimit != nil) != slow || slow && len(row.Kinds) != len(c.ratios) {
				t.Errorf("the limit of a kind is %v, and there are times on %d kinds", row.KindLimit, len(row.Kinds))
			}
		})
	}
}

// The ratio that the mean of the kinds must reach is the target itself where they gain
// alike, is reached exactly where what counts of each comes to the target, and never lies
// below the target.
func TestRaisedTarget(t *testing.T) {
	s := &shapeComparison{goalOf: goalOf{role: RoleTarget}}
	rng := newRand(3, 3)
	for range 2000 {
		asked := 1 + 0.5*rng.Float64()
		var medians []float64
		for range 1 + rng.IntN(6) {
			medians = append(medians, math.Exp(0.4*rng.NormFloat64()))
		}
		raised := s.raisedThreshold(asked, medians)
		if raised < asked*(1-1e-12) {
			t.Fatalf("%v: %g is below the target %g", medians, raised, asked)
		}
		mean, counted := 0.0, 0.0
		for _, m := range medians {
			mean += math.Log(m) / float64(len(medians))
		}
		for _, m := range medians {
			counted += min(math.Log(m)+math.Log(raised)-mean, kindShare*math.Log(asked)) / float64(len(medians))
		}
		if len(medians) > 1 && math.Abs(counted-math.Log(asked)) > 1e-9 {
			t.Fatalf("%v raise %g to %g, of which %g counts", medians, asked, raised, math.Exp(counted))
		}
		alike := slices.Repeat([]float64{medians[0]}, 4)
		if got := s.raisedThreshold(asked, alike); math.Abs(got-asked) > 1e-9 {
			t.Fatalf("%s: kinds that gain alike raise %g to %g", fmt.Sprint(alike), asked, got)
		}
	}
}

// The time of a shape is the geometric mean of the kinds' medians, so that it agrees with the speedup: a kernel that is twice as fast
// on one kind and three times slower on two others is slower, although the median of all its times fell.
func TestTimeOfAShape(t *testing.T) {
	e := ofKinds([]float64{2, 2, 2, 1 / 3.0, 1 / 3.0}, 5)
	rows := judged(t, gate10, e).Comparisons
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	row := rows[0]
	ratio := math.Pow(2, 0.6) / math.Pow(3, 0.4)
	if got := row.Baseline.P50 / row.Candidate.P50; math.Abs(got/ratio-1) > 0.01 || math.Abs(got/(1+row.Speedup.Value)-1) > 0.005 {
		t.Errorf("%g → %g µs is %g, want %g and the speedup %g", row.Baseline.P50, row.Candidate.P50, got, ratio, row.Speedup.Value)
	}
	if len(row.Kinds) != 5 {
		t.Fatalf("%d kinds are shown, want 5", len(row.Kinds))
	}
	for _, k := range row.Kinds {
		if got := k.Baseline / k.Candidate; math.Abs(got/(1+k.Speedup.Value)-1) > 0.01 {
			t.Errorf("%s: %g → %g µs, and the speedup is %g", k.Kind, k.Baseline, k.Candidate, k.Speedup.Value)
		}
	}
	if same := judged(t, gate10, ofKinds([]float64{2, 2, 2, 2, 2}, 5)).Comparisons[0]; same.Kinds != nil {
		t.Errorf("kinds that gain the same are shown: %+v", same.Kinds)
	}
}

// A bound on the time is held against the time that is shown: the slow kinds count.
func TestBoundOnTheTimeOfAShape(t *testing.T) {
	e := ofKinds([]float64{2, 2, 2, 1 / 3.0, 1 / 3.0}, 5)
	v := judged(t, `{target: {shapes: [mission], p50: "<= 80us"}, pairs: 20}`, e)
	if v.Outcome != Defer {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
