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
	few          *stats.Draws
	shapes       []*shapeComparison
	fault        string // why the samples cannot be used
}

// A shapeComparison is one look at one shape.
type shapeComparison struct {
	goalOf
	samples  *samples
	ratio    *stats.Distribution // with the offset of the run
	control  *stats.Distribution
	tests    []test
	tails    []tail
	status   Status
	waits    string  // why the clock on the wall counts; empty where it does not
	floor    float64 // microseconds that the device needs at least; 0 where unknown
	apart    bool    // every side had a context and places of its own in every round
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

// An inquiry is what all looks of a verdict have in common.
type inquiry struct {
	gate     *policies.PerformanceGate
	evidence *Evidence
	goals    []goalOf
	view     view
	*resamples
}

// resamples are drawn once for all figures of a verdict, and are the same for every verdict.
type resamples struct {
	many *stats.Draws // of the figures that decide, where it is close
	few  *stats.Draws // of all others
}

func newResamples(n int) *resamples {
	r := &resamples{few: newDraws(min(fewResamples, n))}
	if r.many = r.few; n > fewResamples {
		r.many = newDraws(n)
	}
	return r
}

// compare holds the rounds against the goals at one look. Meeting all goals
// needs every test to be proven, which needs no correction; a miss on any of
// them defers, so misses within a role are corrected together (Holm).
func (q inquiry) compare(l look) *comparison {
	gate, e := q.gate, q.evidence
	rounds := e.Performance.Rounds[:l.rounds]
	c := &comparison{rounds: l.rounds, alpha: l.alpha, few: q.few}
	for _, g := range q.goals {
		s := &shapeComparison{goalOf: g, samples: collect(rounds, g.shape.Name, q.view)}
		s.apart = e.Device.Kind == "gpu" && s.samples.fresh
		if e.Mode == "cpu" {
			s.useWall(q.few, l.alpha)
		}
		s.control = draw(q.few, s.samples.control, 0.5)
		if s.test(q.few); q.many != q.few && s.close(l.alpha) {
			s.test(q.many)
		}
		s.floor = floorMicros(e.Device, g.shape, s.samples.cold)
		c.shapes = append(c.shapes, s)
	}
	for _, role := range []Role{RoleTarget, RoleGuard} {
		c.decide(role)
		c.decideTails(role, gate)
	}
	return c
}

// test holds the samples against the goal.
func (s *shapeComparison) test(draws *stats.Draws) {
	if s.ratio = draw(draws, s.samples.ratios, 0.5); s.ratio != nil {
		s.ratio = s.ratio.With(s.offset())
		s.tests = s.testsOf(draws, s.goal)
	}
	s.clueless = s.ratio == nil
}

// close tells whether a p-value lies so near to the error rate that the luck of few
// resamples could decide: within a factor of 5, corrections for several shapes
// included. Thousands of resamples are wasted on the others.
func (s *shapeComparison) close(alpha float64) bool {
	for _, t := range s.tests {
		for _, p := range []float64{t.meet, t.miss} {
			if p < 5*alpha && p > alpha/5/128 {
				return true
			}
		}
	}
	return false
}

// draw is nil where there are too few clean rounds to bootstrap.
func draw(draws *stats.Draws, s stats.Sample, quantile float64) *stats.Distribution {
	d, err := draws.Quantile(s, quantile)
	if err != nil {
		return nil
	}
	return d
}

func newDraws(resamples int) *stats.Draws {
	draws, err := stats.NewDraws(resamples, seed)
	if err != nil {
		panic("gates: " + err.Error()) // both callers give a constant that is allowed
	}
	return draws
}

func (s *shapeComparison) testsOf(draws *stats.Draws, goal *policies.Goal) []test {
	var tests []test
	above := func(metric, asked string, threshold float64) {
		tests = append(tests, test{metric, asked, s.ratio.PAbove(threshold), s.ratio.PBelow(threshold), threshold, s.ratio})
	}
	below := func(metric, asked string, quantile, limit float64) {
		if d := draw(draws, s.samples.absolute, quantile); d != nil {
			d = d.With(s.offset())
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

func (c *comparison) decide(role Role) {
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
		if why := c.suspicion(gate, e, outcome); why != "" {
			return suspicious(why)
		}
	}
	r := GateResult{Status: Passed, Text: "Proven: " + c.describe(Passed)}
	switch outcome {
	case Failed:
		r = c.missed()
	case Open:
		r = c.undecided(e.Performance)
	}
	for _, s := range c.shapes {
		if s.samples.strata.differs() {
			r.Details = append(r.Details, fmt.Sprintf("%s by inputs: %s", s.shape.Name, &s.samples.strata))
		}
		for _, more := range []string{s.waits, s.slowTail(c.alpha)} {
			if more != "" {
				r.Details = append(r.Details, s.shape.Name+": "+strings.TrimPrefix(more, "but "))
			}
		}
	}
	return r
}

func (c *comparison) missed() GateResult {
	r := GateResult{Status: Failed}
	for _, s := range c.shapes {
		if s.status == Failed && s.role == RoleGuard {
			r.Reason, r.Text = ReasonRegression, "Slower: "+c.describeRole(Failed, RoleGuard)
			r.ToPass = append(r.ToPass, fmt.Sprintf("win back the time on %s (asked %s)", s.shape.Name, s.goal))
		}
	}
	if r.Reason != "" {
		return r
	}
	r.Reason, r.Text = ReasonTooSlow, "Too slow: "+c.describeRole(Failed, RoleTarget)
	for _, s := range c.shapes {
		if s.status != Failed {
			continue
		}
		if s.slowTail(c.alpha) != "" {
			r.ToPass = append(r.ToPass, fmt.Sprintf("mend the slow launches on %s: what the median gains, they lose", s.shape.Name))
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
		if s.slowTail(c.alpha) != "" {
			r.ToPass = append(r.ToPass, fmt.Sprintf("mend the slow launches on %s, or measure more rounds: comment /rebench", s.shape.Name))
		}
	}
	return r
}

// describe names the shapes of a status with their figures, targets first.
func (c *comparison) describe(status Status) string {
	if text := c.describeRole(status, RoleTarget); text != "" {
		return text
	}
	return c.describeRole(status, RoleGuard)
}

func (c *comparison) describeRole(status Status, role Role) string {
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
		text := fmt.Sprintf("speedup %s on %s (asked %s)", estimate(speedupOf(s.ratio, c.alpha)), s.shape.Name, strings.Join(asked, " and "))
		kinds := ""
		if status == Failed && s.samples.strata.differs() {
			kinds = "by inputs " + s.samples.strata.String()
		}
		for _, more := range []string{kinds, s.waits, s.slowTail(c.alpha)} {
			if more != "" {
				text += ", " + more
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
