package gates

import (
	"encoding/json"
	"math"
	"testing"
)

// A shape passes only where every condition of its goal was tested and proven.
func TestUntestedConditionIsNotProven(t *testing.T) {
	// The smallest float above 0 is a valid time in nanoseconds and 0 in microseconds. One such sample leaves the
	// ratios of a shape usable and its times unusable.
	tiny := func(e *Evidence) {
		s := &e.Performance.Rounds[0].Series[0]
		at := 0
		for _, letter := range s.Order {
			if letter == ' ' {
				continue
			}
			if letter == SideCandidate {
				s.Nanos[at] = math.SmallestNonzeroFloat64
				return
			}
			at++
		}
	}
	const bounds = `{target: {shapes: [mission], p50: "<= 1us"}, pairs: 20, tails: none}`
	const both = `{target: {shapes: [mission], speedup: ">= +10%", p90: "<= 1us"}, pairs: 20, tails: none}`
	for _, c := range []struct {
		name, gate string
		change     func(*Evidence)
		outcome    Outcome
		reason     Reason
		says       string
	}{
		{"a bound that is tested", bounds, func(*Evidence) {}, Defer, ReasonTooSlow, "Too slow"},
		{"the only condition is not tested", bounds, tiny, Defer, ReasonInconclusive, "mission has too few clean samples"},
		{"one of two conditions is not tested", both, tiny, Defer, ReasonInconclusive, "mission has too few clean samples"},
		{"a new kernel of which nothing is asked", `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}`, func(e *Evidence) { e.Baseline = nil }, Pass, "", "Timed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.3).measured(newRand(1, 2), 6)
			c.change(e)
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if e, err = ParseEvidence("evidence.json", data); err != nil {
				t.Fatal(err)
			}
			expect(t, judged(t, c.gate, e), c.outcome, c.reason, c.says)
		})
	}
}

// A kind of input that has too few clean rounds to be judged keeps its shape from passing.
func TestUnknownKindIsNotProven(t *testing.T) {
	e := ofKinds([]float64{1.3, 1.3}, 1)
	for i := range e.Performance.Rounds[1:] {
		e.Performance.Rounds[i+1].Series[0].Distributions = []string{"normal"}
	}
	expect(t, judged(t, gate10, e), Defer, ReasonInconclusive, "mission has too few clean samples")
}

// Goals that select no shape prove nothing.
func TestGoalsWithoutShapes(t *testing.T) {
	e := quiet(1.3).measured(newRand(1, 2), 6)
	e.Shapes = nil
	p := performancePolicy(t, `{target: {speedup: ">= +10%"}, pairs: 20}`)
	j := &judgement{rule: ruleFor(p, e), evidence: e, resamples: quickResamples()}
	if r := j.performance(); r.Status != Missing {
		t.Errorf("the performance gate says %s: %s", r.Status, words(r.Found))
	}
}
