package gates

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// An interim is an interim analysis: the verdict may be decided after so many rounds, at this
// one-sided error rate.
type interim struct {
	rounds int
	alpha  float64
}

// schedule is every interim analysis of this evidence, declared before the first round. A machine
// code has the part of the policy's error rate that codeAlpha gives it. The first attempt at that
// code spends half of this part, the second a quarter, the third an eighth. So all analyses together
// never spend more than the policy allows, however many attempts and machine codes there are. The
// first attempt whose rounds are here spends its share over the policy's interim analyses, a later
// attempt in one analysis at its end.
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
		return nil, fmt.Errorf("planning the interim analyses: %w", err)
	}
	var interims []interim
	for i, share := range shares {
		interims = append(interims, interim{planned[i], share})
	}
	first := 0
	for first < len(rounds) && rounds[first].Attempt <= begun {
		first++
	}
	if first < len(rounds) {
		// A second attempt has begun. If the time budget ended the first attempt between two analyses, the
		// next analysis took place there. It stays there, so that no later round decides it again. The
		// analyses after it are void, and their share stays unspent.
		interims = reached(interims, first, true)
	}
	for i, last := first, begun; i < len(rounds); {
		attempt := rounds[i].Attempt
		for i < len(rounds) && rounds[i].Attempt == attempt {
			i++
		}
		last = max(attempt, last+1) // whatever the numbers say, no share is spent twice
		if i >= policy.MinRounds {
			interims = append(interims, interim{i, alphaFor(alpha, last)})
		}
	}
	return interims, nil
}

// alphaFor is the error rate that an attempt may spend, whether it left rounds or not.
func alphaFor(alpha float64, attempt int) float64 { return math.Ldexp(alpha, -attempt) }

// reached is the interim analyses that the rounds allow. Where the time budget ended the measuring
// between two analyses, the next one takes place early: its share is unspent, and the budget does
// not depend on what was measured. With fewer rounds than any policy may ask for there is no
// analysis.
func reached(interims []interim, rounds int, exhausted bool) []interim {
	n := 0
	for n < len(interims) && interims[n].rounds <= rounds {
		n++
	}
	done := interims[:n:n]
	last := 0
	if n > 0 {
		last = interims[n-1].rounds
	}
	if exhausted && n < len(interims) && rounds > last && rounds >= policy.MinRounds {
		done = append(done, interim{rounds, interims[n].alpha})
	}
	return done
}

// A SoFar is the speedup on the first target before any interim analysis, for progress messages. It
// decides nothing. Of a new kernel it is the time.
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

// speedup is the speedup that the goal asks for, or nil.
func (g goalOf) speedup() *float64 {
	switch {
	case g.goal.Speedup != nil:
		return rounded(float64(g.goal.Speedup.Value))
	case g.goal.LatencyReduction != nil:
		return rounded(1/(1-float64(g.goal.LatencyReduction.Value)) - 1)
	}
	return nil
}
