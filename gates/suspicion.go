package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A suspect is a fact that speaks against the figures, with the p-value of its absence.
type suspect struct {
	p    float64
	fact facts.Fact
}

// unsuspected is the result of a test that found nothing, or had nothing to test.
var unsuspected = suspect{p: 1}

// firstProven is the first suspect that is proven at the error rate alpha, all of them taken together (Holm); nil where none is.
func firstProven(all []suspect, alpha float64) facts.Fact {
	var p []float64
	for _, s := range all {
		p = append(p, s.p)
	}
	for i, proven := range stats.Holm(p, alpha) {
		if proven {
			return all[i].fact
		}
	}
	return nil
}

// suspicion is what makes figures too good to be true, or nil. All of it but a time below the
// physical floor counts only against a pass: it flatters the candidate, so a candidate that is
// too slow is too slow all the more.
func (c *comparison) suspicion(gate *policy.PerformanceGate, e *Evidence, outcome Status) facts.Fact {
	if why := c.belowFloor(gate); why != nil {
		return why
	}
	if c.overclaimed != nil || outcome != Passed {
		return c.overclaimed
	}
	checks := []func(*shapeComparison) suspect{
		func(s *shapeComparison) suspect { return s.disturbs(c.few, gate) },
		func(s *shapeComparison) suspect { return s.samples.marks.moreWithCandidate(c.few, s.shape.Label()) },
		func(s *shapeComparison) suspect { return s.dependsOnState(c.few) },
	}
	if e.Can().Clock == ClockDevice {
		checks = append(checks, func(s *shapeComparison) suspect { return s.unseenGain(c.few) })
	}
	for _, check := range checks {
		var all []suspect
		for _, s := range c.shapes {
			all = append(all, check(s))
		}
		if why := firstProven(all, c.alpha); why != nil {
			return why
		}
	}
	return nil
}

// findOverclaim finds a batch that claims more than its launches show alone, or whose launches
// work for each other. A shape that misses its goal all the same is too slow, whatever it claims.
func (c *comparison) findOverclaim(e *Evidence) {
	missed := func(s *shapeComparison) bool { return s.status == Failed && s.refuted == nil }
	if !judgesSingle(e) || slices.ContainsFunc(c.shapes, missed) {
		return
	}
	checks := []func(*shapeComparison) []suspect{
		func(s *shapeComparison) []suspect { return s.overclaims(c.few, e) },
		func(s *shapeComparison) []suspect { return s.preparesOnce(c.few) },
		func(s *shapeComparison) (all []suspect) {
			for _, t := range s.unevenAlone(c.few, e, c.alpha) {
				all = append(all, suspect{t.proven, t.fact})
			}
			return all
		},
	}
	for _, check := range checks {
		var all []suspect
		for _, s := range c.shapes {
			all = append(all, check(s)...)
		}
		if c.overclaimed = firstProven(all, c.alpha); c.overclaimed != nil {
			return
		}
	}
}

func suspicious(why facts.Fact) GateResult {
	return GateResult{Status: Failed, Reason: ReasonSuspicious, Found: facts.Suspicious{Why: why}, Steps: []facts.Advice{facts.ShowWork{}}}
}

// belowFloor finds a time that the device cannot reach.
func (c *comparison) belowFloor(gate *policy.PerformanceGate) facts.Fact {
	if gate.Roofline != nil && !*gate.Roofline {
		return nil
	}
	for _, s := range c.shapes {
		if p50 := stats.Describe(s.samples.candidate).P50; p50 > 0 && p50 < s.floor {
			return facts.BelowFloor{Shape: s.shape.Label(), Micros: p50, Floor: s.floor}
		}
	}
	return nil
}

// disturbs tests whether the candidate slows the baseline down.
func (s *shapeComparison) disturbs(draws *stats.ResamplePlan, gate *policy.PerformanceGate) suspect {
	solo := draw(draws, s.samples.solo, 0.5)
	if solo == nil {
		return unsuspected
	}
	return suspect{
		solo.PAbove(1 + float64(gate.SoloShift)),
		facts.Disturbs{Shape: s.shape.Label(), Slower: solo.Estimate - 1, Allowed: gate.SoloShift.String()},
	}
}

// dependsOnState tests whether the candidate's time depends on what an earlier launch left behind.
func (s *shapeComparison) dependsOnState(draws *stats.ResamplePlan) suspect {
	d := draw(draws, s.samples.clocks.stateful, 0.5)
	if d == nil {
		return unsuspected
	}
	return suspect{d.PAbove(1 + keptFaster), facts.FasterWithState{Shape: s.shape.Label(), Faster: d.Estimate - 1}}
}

// preparesOnce tests whether the candidate's first launch in a process does work that later ones
// are spared: a batch hides it.
func (s *shapeComparison) preparesOnce(draws *stats.ResamplePlan) []suspect {
	d := draw(draws, s.samples.clocks.first, 0.5)
	if d == nil {
		return nil
	}
	return []suspect{{d.PAbove(1), facts.PreparesOnce{Shape: s.shape.Label()}}}
}

// unseenGain tests whether the device's clock claims a gain that the clock on the wall does not
// see. What lies around a launch is the same on both sides, so the wall must show the gain too.
// Where its noise is too large, the test finds nothing.
func (s *shapeComparison) unseenGain(draws *stats.ResamplePlan) suspect {
	k := &s.samples.clocks
	gain := stats.Describe(k.gain).P50
	if gain < hostGain {
		return unsuspected
	}
	d := draw(draws, k.host, 0.5)
	if d == nil {
		return unsuspected
	}
	return suspect{d.PBelow(1), facts.GainUnseen{Shape: s.shape.Label(), Wall: d.Estimate - 1 + gain/2, Device: gain}}
}
