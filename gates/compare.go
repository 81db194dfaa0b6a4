package gates

import (
	"fmt"
	"math"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies"
)

// A comparison is one look at all shapes.
type comparison struct {
	rounds, look int
	alpha        float64 // one-sided, of this look
	shapes       []*shapeComparison
	fault        string // why the samples cannot be used
}

// A shapeComparison is one look at one shape.
type shapeComparison struct {
	goalOf
	samples  samples
	ratio    *stats.Distribution
	control  *stats.Distribution
	solo     *stats.Distribution
	tests    []test
	status   Status
	floor    float64 // microseconds that the device needs at least; 0 where unknown
	clueless bool    // the samples are too few to say anything
}

// A test is one condition of a goal: the p-values of having met and of having
// missed it.
type test struct {
	metric, asked string
	meet, miss    float64
	threshold     float64 // in the unit of the distribution
	dist          *stats.Distribution
}

// compare holds the rounds against the goals at one look. Meeting all goals
// needs every test to be proven, which needs no correction; a miss on any of
// them defers, so misses within a role are corrected together (Holm).
func compare(gate *policies.PerformanceGate, device Device, goals []goalOf, rounds []Round, alpha float64) *comparison {
	c := &comparison{rounds: len(rounds), alpha: alpha}
	for _, g := range goals {
		s := &shapeComparison{goalOf: g, samples: collect(rounds, g.shape.Name)}
		s.ratio = draw(s.samples.ratios, 0.5)
		s.clueless = s.ratio == nil
		s.floor = floorMicros(device, g.shape, s.samples.cold)
		if !s.clueless {
			s.tests = s.testsOf(g.goal)
		}
		c.shapes = append(c.shapes, s)
	}
	for _, role := range []string{"target", "guard"} {
		c.decide(role)
	}
	if c.outcome() != Open {
		c.checkRunner(gate)
	}
	return c
}

// draw is nil where there are too few clean rounds to bootstrap.
func draw(s stats.Sample, quantile float64) *stats.Distribution {
	d, err := stats.Bootstrap(s, stats.Options{Seed: seed, Quantile: quantile})
	if err != nil {
		return nil
	}
	return d
}

func (s *shapeComparison) testsOf(goal *policies.Goal) []test {
	var tests []test
	above := func(metric, asked string, threshold float64) {
		tests = append(tests, test{metric, asked, s.ratio.PAbove(threshold), s.ratio.PBelow(threshold), threshold, s.ratio})
	}
	below := func(metric, asked string, quantile, limit float64) {
		if d := draw(s.samples.latencies, quantile); d != nil {
			tests = append(tests, test{metric, asked, d.PBelow(limit), d.PAbove(limit), limit, d})
		}
	}
	if b := goal.Speedup; b != nil {
		above("speedup", b.String(), 1+float64(b.Value))
	}
	if b := goal.LatencyReduction; b != nil {
		above("latency reduction", b.String(), 1/(1-float64(b.Value)))
	}
	if b := goal.P50; b != nil {
		below("p50", b.String(), 0.5, float64(b.Value))
	}
	if b := goal.P90; b != nil {
		below("p90", b.String(), 0.9, float64(b.Value))
	}
	return tests
}

func (c *comparison) decide(role string) {
	var misses []float64
	for _, s := range c.shapes {
		if s.role == role {
			for _, t := range s.tests {
				misses = append(misses, t.miss)
			}
		}
	}
	missed := stats.Holm(misses, c.alpha)
	at := 0
	for _, s := range c.shapes {
		if s.role != role {
			continue
		}
		s.status = Passed
		if s.clueless {
			s.status = Open
		}
		for _, t := range s.tests {
			switch {
			case missed[at]:
				s.status = Failed
			case t.meet > c.alpha && s.status == Passed:
				s.status = Open
			}
			at++
		}
	}
}

// outcome is Failed as soon as one shape has missed, Passed when all have met.
func (c *comparison) outcome() Status {
	outcome := Passed
	for _, s := range c.shapes {
		switch {
		case s.status == Failed:
			return Failed
		case s.status == Open:
			outcome = Open
		}
	}
	return outcome
}

// checkRunner looks at what would make the figures worthless.
func (c *comparison) checkRunner(gate *policies.PerformanceGate) {
	var low, high []float64
	var where []*shapeComparison
	for _, s := range c.shapes {
		if s.control = draw(s.samples.control, 0.5); s.control != nil {
			where = append(where, s)
			low = append(low, s.control.PBelow(1-float64(gate.Control)))
			high = append(high, s.control.PAbove(1+float64(gate.Control)))
		}
		s.solo = draw(s.samples.solo, 0.5)
	}
	for _, p := range [][]float64{low, high} {
		for i, off := range stats.Holm(p, c.alpha) {
			if off {
				s := where[i]
				c.fault = fmt.Sprintf("the A/A control on %s is %s instead of 0: two copies of the baseline differ by more than the allowed %s",
					s.shape.Name, estimate(speedupOf(s.control, c.alpha)), gate.Control)
			}
		}
	}
	clean, spoiled := 0, 0
	for _, s := range c.shapes {
		clean += len(s.samples.baseline) + len(s.samples.candidate)
		spoiled += s.samples.spoiled
	}
	if spoiled > clean {
		c.fault = fmt.Sprintf("%d of %d samples were disturbed from outside", spoiled, spoiled+clean)
	}
}

// suspicion is what makes figures too good to be true. A disturbed baseline counts
// only against a pass: it flatters the candidate, so that one which is still too
// slow is too slow all the more.
func (c *comparison) suspicion(gate *policies.PerformanceGate, outcome Status) string {
	var solo []float64
	var where []*shapeComparison
	for _, s := range c.shapes {
		p50 := stats.Describe(s.samples.candidate).P50
		if (gate.Roofline == nil || *gate.Roofline) && p50 > 0 && p50 < s.floor {
			return fmt.Sprintf("%s takes %.4g µs, below the %.4g µs that the device needs at least for this work", s.shape.Name, p50, s.floor)
		}
		if s.solo != nil && outcome == Passed {
			where = append(where, s)
			solo = append(solo, s.solo.PAbove(1+float64(gate.SoloShift)))
		}
	}
	for i, shifted := range stats.Holm(solo, c.alpha) {
		if shifted {
			s := where[i]
			return fmt.Sprintf("the baseline is %s slower beside the candidate than alone on %s (at most %s): the candidate disturbs what it is measured against",
				percent(s.solo.Estimate-1), s.shape.Name, gate.SoloShift)
		}
	}
	return ""
}

// floorMicros is the time that no kernel can beat: the work over the device's
// limits. Traffic counts only where the caches were cold.
func floorMicros(d Device, s Shape, cold bool) float64 {
	floor := 0.0
	if peak := d.Peak[s.Peak]; peak > 0 {
		floor = s.FLOPs / peak * 1e6
	}
	if d.Bandwidth > 0 && cold {
		floor = math.Max(floor, s.Bytes/d.Bandwidth*1e6)
	}
	return floor
}

// result puts the comparison into words.
func (c *comparison) result(gate *policies.PerformanceGate, e *Evidence) GateResult {
	if c.fault != "" {
		return GateResult{
			Status: Failed, Reason: ReasonRunner, Text: "The runner is not fit to measure: " + c.fault,
			ToPass: []string{"free the machine of other work, then run again"},
		}
	}
	outcome := c.outcome()
	if outcome != Open {
		if why := c.suspicion(gate, outcome); why != "" {
			return GateResult{
				Status: Failed, Reason: ReasonSuspicious, Text: "Too good to be true: " + why,
				ToPass: []string{"show that all of the work is done and timed, or ask a maintainer to /override with the reason"},
			}
		}
	}
	switch outcome {
	case Passed:
		return GateResult{Status: Passed, Text: "Proven: " + c.describe(Passed)}
	case Failed:
		return c.missed()
	}
	return c.undecided(e.Performance)
}

func (c *comparison) missed() GateResult {
	r := GateResult{Status: Failed}
	for _, s := range c.shapes {
		if s.status == Failed && s.role == "guard" {
			r.Reason, r.Text = ReasonRegression, "Slower: "+c.describeRole(Failed, "guard")
			r.ToPass = append(r.ToPass, fmt.Sprintf("win back the time on %s (asked %s)", s.shape.Name, s.goal))
		}
	}
	if r.Reason != "" {
		return r
	}
	r.Reason, r.Text = ReasonTooSlow, "Too slow: "+c.describeRole(Failed, "target")
	for _, s := range c.shapes {
		if s.status != Failed {
			continue
		}
		for _, t := range s.tests {
			if t.dist != s.ratio {
				continue
			}
			p50 := stats.Describe(s.samples.baseline).P50
			r.ToPass = append(r.ToPass, fmt.Sprintf("bring the p50 of %s from %.5g µs to %.5g µs or less (%s %s over %.5g µs)",
				s.shape.Name, stats.Describe(s.samples.candidate).P50, p50/t.threshold, t.metric, t.asked, p50))
		}
	}
	return r
}

func (c *comparison) undecided(p *Performance) GateResult {
	r := GateResult{Status: Open, Reason: ReasonInconclusive}
	why := ""
	if p.Exhausted {
		why = ", when the time budget was spent"
	}
	r.Text = fmt.Sprintf("Not decided after %d rounds%s: %s", c.rounds, why, c.describe(Open))
	for _, s := range c.shapes {
		if s.status != Open {
			continue
		}
		if s.clueless {
			r.ToPass = append(r.ToPass, fmt.Sprintf("measure %s again: too few clean samples", s.shape.Name))
			continue
		}
		for _, t := range s.tests {
			if t.meet <= c.alpha {
				continue
			}
			detail := fmt.Sprintf("%s: with this noise, %d rounds can show a difference of %s from the goal", s.shape.Name, c.rounds, percent(t.dist.Detectable(c.alpha, power)))
			if n := t.dist.RoundsNeeded(t.threshold, c.alpha, power); n < 10_000 {
				detail += fmt.Sprintf("; about %d rounds would decide", n)
				r.ToPass = append(r.ToPass, fmt.Sprintf("comment /rebench rounds=%d, or gain more on %s", max(n-c.rounds, 1), s.shape.Name))
			} else {
				r.ToPass = append(r.ToPass, fmt.Sprintf("gain more on %s: it stands on the threshold, and no affordable number of rounds decides that", s.shape.Name))
			}
			r.Details = append(r.Details, detail)
		}
	}
	return r
}

// describe names the shapes of a status with their figures, targets first.
func (c *comparison) describe(status Status) string {
	if text := c.describeRole(status, "target"); text != "" {
		return text
	}
	return c.describeRole(status, "guard")
}

func (c *comparison) describeRole(status Status, role string) string {
	var parts []string
	for _, s := range c.shapes {
		if s.status != status || s.role != role {
			continue
		}
		if s.clueless {
			parts = append(parts, s.shape.Name+" has too few clean samples")
			continue
		}
		asked := make([]string, len(s.tests))
		for i, t := range s.tests {
			asked[i] = t.metric + " " + t.asked
		}
		parts = append(parts, fmt.Sprintf("speedup %s on %s (asked %s)",
			estimate(speedupOf(s.ratio, c.alpha)), s.shape.Name, strings.Join(asked, " and ")))
	}
	return strings.Join(parts, "; ")
}
