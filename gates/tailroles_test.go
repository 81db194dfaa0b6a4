package gates

import (
	"fmt"
	"testing"
)

// Tails are judged for every role, for every goal that names the baseline, and at every look.
func TestTailsByRoleAndGoal(t *testing.T) {
	spiky := func(rounds int) *Evidence {
		rng := newRand(8, 8)
		m := quiet(1.12)
		m.blocks = 50
		m.alter = func(_, _ int, side rune, ns float64) float64 {
			if side == SideCandidate && rng.Float64() < 0.05 {
				return ns * 3
			}
			return ns
		}
		return m.measured(newRand(9, 9), rounds)
	}
	steady := quiet(1.12)
	steady.blocks = 50
	reasons := map[string]Reason{"target": ReasonTooSlow, "guard": ReasonRegression}
	for _, goal := range []struct {
		text string
		says bool // the goal says something about the baseline, so it has tails
	}{
		{`speedup: ">= +10%"`, true},
		{`latency_reduction: ">= 9%"`, true},
		{`speedup: ">= -50%", latency_reduction: ">= 9%"`, true}, // the stricter one decides
		{`speedup: ">= +10%", latency_reduction: ">= -90%"`, true},
		{`p50: "<= 95us"`, false},
	} {
		for role, reason := range reasons {
			for _, tails := range []string{"", ", tails: none", ", tails: {mean: none}", ", tails: {mean: 50%}"} {
				for _, rounds := range []int{6, 20} {
					t.Run(fmt.Sprint(role, " ", goal.text, tails, " ", rounds), func(t *testing.T) {
						p := performancePolicy(t, fmt.Sprintf(`{%s: {shapes: [mission], %s}, pairs: 50%s}`, role, goal.text, tails))
						expect(t, judgeQuickly(p, steady.measured(newRand(9, 9), rounds)), Pass, "", "")
						v := judgeQuickly(p, spiky(rounds))
						switch {
						case !goal.says || tails != "":
							expect(t, v, Pass, "", "")
						case rounds == 6 && v.Reason == ReasonInconclusive: // more rounds decide
						default:
							expect(t, v, Defer, reason, "but the speedup of the mean is")
						}
					})
				}
			}
		}
	}
}

// A tail is compared with the goal, less what the policy allows it: a candidate whose every launch is equally fast meets both.
func TestTailLimit(t *testing.T) {
	slowMean := quiet(1.12) // every tenth launch takes 30 % longer, so the mean gains 8.7 %
	slowMean.alter = func(_, block int, side rune, ns float64) float64 {
		if side == SideCandidate && block%10 == 0 {
			return ns * 1.3
		}
		return ns
	}
	e := slowMean.measured(newRand(9, 9), 20)
	for _, c := range []struct {
		goal, tails string
		outcome     Outcome
	}{
		{`speedup: ">= +10%"`, "{mean: 2%, p90: none}", Pass},
		{`speedup: ">= +10%"`, "{mean: 0.5%, p90: none}", Defer},
		{`latency_reduction: ">= 9%"`, "{mean: 2%, p90: none}", Pass},
		{`latency_reduction: ">= 9%"`, "{mean: 0.5%, p90: none}", Defer},
		{`speedup: ">= 0%"`, "{mean: 0.5%, p90: none}", Pass},
	} {
		p := performancePolicy(t, fmt.Sprintf(`{target: {shapes: [mission], %s}, pairs: 20, tails: %s}`, c.goal, c.tails))
		if v := judgeQuickly(p, e); v.Outcome != c.outcome {
			t.Errorf("%s with tails %s: %s (%s): %s", c.goal, c.tails, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// A control that differs from the baseline makes a run worthless at whichever look the run is decided.
func TestControlAtEveryLook(t *testing.T) {
	m := quiet(2)
	m.alter = func(_, _ int, side rune, ns float64) float64 {
		if side == SideControl {
			return ns * 1.04
		}
		return ns
	}
	for _, rounds := range []int{6, 12, 20} {
		expect(t, judged(t, gate10, m.measured(newRand(9, 9), rounds)), Error, ReasonRunner, "")
	}
}

// A shape that was asked for and never timed does not pass, whatever its role.
func TestUntimedShape(t *testing.T) {
	for _, role := range []string{"target", "guard"} {
		for _, shape := range []string{"mission", "small"} {
			p := performancePolicy(t, fmt.Sprintf(`{%s: {shapes: all, speedup: ">= -2%%"}, pairs: 20, tails: none}`, role))
			e := passing()
			expect(t, Judge(p, "test.yaml", e), Pass, "", "")
			for i := range e.Performance.Rounds {
				r := &e.Performance.Rounds[i]
				var kept []Series
				for _, s := range r.Series {
					if s.Shape != shape {
						kept = append(kept, s)
					}
				}
				r.Series = kept
			}
			if v := Judge(p, "test.yaml", e); v.Outcome != Defer {
				t.Errorf("%s %s was never timed: %s (%s): %s", role, shape, v.Outcome, v.Reason, v.Summary)
			}
		}
	}
}
