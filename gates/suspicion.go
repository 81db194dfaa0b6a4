package gates

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// suspicion is what makes figures too good to be true. All but a time below the
// physical floor counts only against a pass: it flatters the candidate, so that one
// which is still too slow is too slow all the more.
func (c *comparison) suspicion(gate *policy.PerformanceGate, e *Evidence, outcome Status) string {
	if why := c.belowFloor(gate); why != "" {
		return why
	}
	if c.overclaimed != "" || outcome != Passed {
		return c.overclaimed
	}
	checks := []func(*shapeComparison) (float64, string){
		func(s *shapeComparison) (float64, string) { return s.disturbs(c.few, gate) },
		func(s *shapeComparison) (float64, string) { return s.samples.marks.moreBeside(c.few, s.shape.Label()) },
		func(s *shapeComparison) (float64, string) { return s.keeps(c.few) },
	}
	if e.Mode == "cuda" {
		checks = append(checks, func(s *shapeComparison) (float64, string) { return s.unseenGain(c.few) })
	}
	for _, check := range checks {
		var p []float64
		var why []string
		for _, s := range c.shapes {
			value, text := check(s)
			p, why = append(p, value), append(why, text)
		}
		for i, proven := range stats.Holm(p, c.alpha) {
			if proven {
				return why[i]
			}
		}
	}
	return ""
}

// findOverclaim finds a batch that claims more than its launches show alone, or whose launches
// work for each other. What misses its goal all the same is too slow, whatever it claims.
func (c *comparison) findOverclaim(e *Evidence) {
	missed := func(s *shapeComparison) bool { return s.status == Failed && s.refuted == "" }
	if !judgesLone(e) || slices.ContainsFunc(c.shapes, missed) {
		return
	}
	checks := []func(*shapeComparison) (p []float64, why []string){
		func(s *shapeComparison) ([]float64, []string) { return s.overclaims(c.few, e) },
		func(s *shapeComparison) ([]float64, []string) { return s.preparesOnce(c.few) },
		func(s *shapeComparison) (p []float64, why []string) {
			for _, t := range s.unevenAlone(c.few, e, c.alpha) {
				p, why = append(p, t.proven), append(why, t.text)
			}
			return p, why
		},
	}
	for _, check := range checks {
		var p []float64
		var why []string
		for _, s := range c.shapes {
			more, text := check(s)
			p, why = append(p, more...), append(why, text...)
		}
		for i, proven := range stats.Holm(p, c.alpha) {
			if proven {
				c.overclaimed = why[i]
				return
			}
		}
	}
}

func suspicious(why string) GateResult {
	return GateResult{
		Status: Failed, Reason: ReasonSuspicious, Text: "Too good to be true: " + why,
		ToPass: []string{"show that all of the work is done and timed, or ask a maintainer to /override with the reason"},
	}
}

// belowFloor finds a time that the device cannot reach.
func (c *comparison) belowFloor(gate *policy.PerformanceGate) string {
	if gate.Roofline != nil && !*gate.Roofline {
		return ""
	}
	for _, s := range c.shapes {
		if p50 := stats.Describe(s.samples.candidate).P50; p50 > 0 && p50 < s.floor {
			return fmt.Sprintf("%s takes %.4g µs, below the %.4g µs that the device needs at least for this work", s.shape.Label(), p50, s.floor)
		}
	}
	return ""
}

// disturbs finds a candidate that slows the baseline beside it.
func (s *shapeComparison) disturbs(draws *stats.ResamplePlan, gate *policy.PerformanceGate) (float64, string) {
	solo := draw(draws, s.samples.solo, 0.5)
	if solo == nil {
		return 1, ""
	}
	return solo.PAbove(1 + float64(gate.SoloShift)), fmt.Sprintf(
		"the baseline is %s slower beside the candidate than alone on %s (at most %s): the candidate disturbs what it is measured against",
		percent(solo.Estimate-1), s.shape.Label(), gate.SoloShift)
}

// keeps finds a candidate whose time depends on what an earlier launch left behind.
func (s *shapeComparison) keeps(draws *stats.ResamplePlan) (float64, string) {
	d := draw(draws, s.samples.clocks.kept, 0.5)
	if d == nil {
		return 1, ""
	}
	return d.PAbove(1 + keptFaster), fmt.Sprintf("the candidate is %s faster on %s when its memory is not reset between launches: its time depends on state that it keeps", percent(d.Estimate-1), s.shape.Label())
}

// preparesOnce finds a candidate whose first launch in a process does work that later ones
// are spared: a batch hides it.
func (s *shapeComparison) preparesOnce(draws *stats.ResamplePlan) (p []float64, why []string) {
	d := draw(draws, s.samples.clocks.first, 0.5)
	if d == nil {
		return nil, nil
	}
	return []float64{d.PAbove(1)}, []string{fmt.Sprintf("on %s the first launch of a process takes longer than those after it by more than the baseline's does: a launch does work that later ones are spared", s.shape.Label())}
}

// unseenGain finds a gain that the device's clock claims and the clock on the wall
// does not see. What lies around a launch is the same on both sides, so the wall must
// show the gain too; where its noise is too large to tell, nothing is said.
func (s *shapeComparison) unseenGain(draws *stats.ResamplePlan) (float64, string) {
	k := &s.samples.clocks
	gain := stats.Describe(k.gain).P50
	if gain < hostGain {
		return 1, ""
	}
	d := draw(draws, k.host, 0.5)
	if d == nil {
		return 1, ""
	}
	return d.PBelow(1), fmt.Sprintf("the clock on the wall does not see the gain on %s: it shows %s of the baseline's time where the device's shows %s",
		s.shape.Label(), signed(d.Estimate-1+gain/2), signed(gain))
}
