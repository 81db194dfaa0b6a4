package gates

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A interim is a moment at which the verdict may fall: after so many rounds, at an
// error rate of its own for each side.
type interim struct {
	rounds int
	alpha  float64
}

// schedule is every look at which this evidence may be judged, declared before
// the first round. A machine code has the part of the policy's error rate that
// codeShare gives it. The first attempt at that code spends half of this part, the
// second a quarter, the third an eighth: however often somebody asks for another, and
// however many machine codes somebody tries, all looks together never spend more
// than the policy allows. The first attempt whose rounds are here spends its share
// over the policy's looks, a later one in one look at its end.
func schedule(gate *policy.PerformanceGate, rounds []Round) ([]interim, error) {
	number := codeNumber(rounds)
	alpha := codeAlpha((1-float64(gate.Confidence))/2, number)
	begun := 1
	if len(rounds) > 0 {
		begun = max(begun, rounds[0].Attempt) // those before it left no rounds
	}
	planned := interimsOf(gate, number)
	shares, err := stats.Spend(alphaFor(alpha, begun), planned)
	if err != nil {
		return nil, fmt.Errorf("planning the looks: %w", err)
	}
	var looks []interim
	for i, share := range shares {
		looks = append(looks, interim{planned[i], share})
	}
	first := 0
	for first < len(rounds) && rounds[first].Attempt <= begun {
		first++
	}
	if first < len(rounds) {
		// A second attempt has begun. The budget ended the first one where it ended,
		// and if that was between two looks, the next one took place there: it stays
		// where it was, so that no later round decides it again. Looks beyond it are
		// void; their share stays unspent.
		looks = reached(looks, first, true)
	}
	for i, last := first, begun; i < len(rounds); {
		attempt := rounds[i].Attempt
		for i < len(rounds) && rounds[i].Attempt == attempt {
			i++
		}
		last = max(attempt, last+1) // whatever the numbers say, no share is spent twice
		if i >= policy.MinRounds {
			looks = append(looks, interim{i, alphaFor(alpha, last)})
		}
	}
	return looks, nil
}

// alphaFor is what an attempt may spend, whether it left rounds or not.
func alphaFor(alpha float64, attempt int) float64 { return math.Ldexp(alpha, -attempt) }

// reached is the looks that the rounds allow. Where the time budget ended the
// measuring between two looks, the next one takes place early: its share is
// unspent, and the budget does not depend on what was measured. With fewer rounds
// than any policy may ask for there is nothing to look at.
func reached(looks []interim, rounds int, exhausted bool) []interim {
	n := 0
	for n < len(looks) && looks[n].rounds <= rounds {
		n++
	}
	done := looks[:n:n]
	last := 0
	if n > 0 {
		last = looks[n-1].rounds
	}
	if exhausted && n < len(looks) && rounds > last && rounds >= policy.MinRounds {
		done = append(done, interim{rounds, looks[n].alpha})
	}
	return done
}

// A SoFar is the speedup on the first shape that must gain, before any look: it
// decides nothing and is for the impatient alone. Of a new kernel it is the time.
type SoFar struct {
	Shape   string    `json:"shape"`
	Speedup *Estimate `json:"speedup,omitempty"`
	P50     float64   `json:"p50_us,omitempty"`
	Goal    *float64  `json:"goal,omitempty"` // that the speedup is held against
}

func (s *SoFar) String() string {
	if s.Speedup == nil {
		return fmt.Sprintf("%s %.4g\u00a0µs so far", s.Shape, s.P50)
	}
	return fmt.Sprintf("%s %s so far", s.Shape, *s.Speedup)
}

// FindSoFar is nil where nothing is known yet.
func FindSoFar(rule *policy.Rule, e *Evidence) *SoFar {
	gate := rule.Gates.Performance
	if gate == nil || e.Performance == nil {
		return nil
	}
	goals, _ := goalsOf(gate, e)
	goals, _ = e.splitGoals(goals)
	if len(goals) == 0 {
		return nil
	}
	target := slices.IndexFunc(goals, func(g goalOf) bool { return g.role == RoleTarget })
	g := goals[max(target, 0)]
	draws := newResamplePlan(stats.DefaultResamples)
	s := &shapeComparison{samples: collect(e.Performance.Rounds, g.shape.Name, clean)}
	if e.Baseline == nil {
		return &SoFar{Shape: g.shape.Name, P50: stats.Describe(s.samples.candidate).P50}
	}
	s.control = draw(draws, s.samples.control, 0.5)
	d := draw(draws, s.samples.ratios, 0.5)
	if d == nil {
		return nil
	}
	return &SoFar{Shape: g.shape.Name, Speedup: new(speedupOf(d.With(s.runBias()), (1-float64(gate.Confidence))/2)), Goal: g.speedup()}
}

// speedup is what the goal asks of it, if anything.
func (g goalOf) speedup() *float64 {
	switch {
	case g.goal.Speedup != nil:
		return rounded(float64(g.goal.Speedup.Value))
	case g.goal.LatencyReduction != nil:
		return rounded(1/(1-float64(g.goal.LatencyReduction.Value)) - 1)
	}
	return nil
}
