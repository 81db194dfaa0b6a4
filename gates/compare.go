package gates

import (
	"math"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A comparison is one interim analysis of all shapes.
type comparison struct {
	rounds, interim int
	alpha           float64 // one-sided, of this analysis
	number          int     // of the machine code
	few             *stats.ResamplePlan
	shapes          []*shapeComparison
	steps           []*shapeComparison // all launches of a step, where the shapes have weights: one for each context
	fault           facts.Fact         // why the samples cannot be used; else nil
	overclaimed     facts.Fact         // what batches claim and launches that ran alone do not show; else nil
}

// A shapeComparison is one interim analysis of one shape.
type shapeComparison struct {
	goalOf
	samples  *samples
	others   *samples            // on kinds of input that the goal is not about; nil where there are none
	ratio    *stats.Distribution // with the offset of the run
	control  *stats.Distribution
	tests    []test
	tails    []tail
	kinds    []kindTest
	status   Status
	alpha    float64             // one-sided, of the analysis
	settled  bool                // an earlier analysis decided, and the shape was timed no more
	alone    *stats.Distribution // what launches that ran alone gained, see singleShare; nil where none did
	waits    facts.Fact          // why the clock on the wall counts; nil where it does not
	floor    float64             // microseconds that the device needs at least; 0 where unknown
	separate bool                // every round loads every side into a new context, at new addresses
	tooFew   bool                // the samples are too few to say anything

	kindFloor            float64      // the least ratio that each kind of input must have
	sum                  *weightedSum // of all launches of a step; nil for a shape
	unconfirmed, refuted facts.Fact   // what launches that ran alone do not show, or show to be otherwise
}

// A test is one condition of a goal: the p-values of having met and of having
// missed it.
type test struct {
	metric, asked string
	meet, miss    float64
	threshold     float64 // in the unit of the distribution
	dist          *stats.Distribution
	agree, rounds int // how many of the rounds meet the goal, each on its own samples
}

// An analysis is what all interim analyses of a verdict have in common.
type analysis struct {
	gate     *policy.PerformanceGate
	evidence *Evidence
	goals    []goalOf
	view     view
	*resamples
}

// resamples are drawn once for all figures of a verdict, and are the same for every verdict.
type resamples struct {
	many *stats.ResamplePlan // of the figures that decide close cases
	few  *stats.ResamplePlan // of all figures that do not
}

func newResamples(n int) *resamples {
	r := &resamples{few: newResamplePlan(min(fewResamples, n))}
	if r.many = r.few; n > fewResamples {
		r.many = newResamplePlan(n)
	}
	return r
}

// compare tests the rounds against the goals. Meeting all goals needs every test to be proven, which
// needs no correction for multiple tests. A miss of any goal defers the change, so the misses within
// a role are corrected together (Holm). Shapes that the analysis before has settled stay as they are.
func (q analysis) compare(l interim, before *comparison) *comparison {
	gate, e := q.gate, q.evidence
	rounds := e.Performance.Rounds[:l.rounds]
	c := &comparison{rounds: l.rounds, alpha: l.alpha, number: e.Performance.CodeNumber(), few: q.few}
	for _, g := range q.goals {
		if s := before.settled(g.shape.Name, rounds); s != nil {
			c.shapes = append(c.shapes, s)
			continue
		}
		s := q.read(g, rounds, l.alpha)
		s.alone = s.singleShare(q.few)
		if s.test(q.few); q.many != q.few && s.nearThreshold(l.alpha) {
			s.test(q.many)
		}
		s.floor = floorMicros(e.Device, g.shape, s.samples.cold)
		c.shapes = append(c.shapes, s)
	}
	c.steps = q.stepsOf(l, c, before)
	for _, role := range []Role{RoleTarget, RoleGuard, RoleInfo} {
		c.decide(role)
		c.decideTails(role, gate)
		c.decideKinds(role, gate)
	}
	for _, s := range c.steps {
		c.decideStepTails(s, gate)
	}
	c.confirm(gate, e)
	for _, s := range c.steps {
		c.confirmStep(s, e)
	}
	c.findOverclaim(e)
	return c
}

// read collects one shape out of rounds.
func (q analysis) read(g goalOf, rounds []Round, alpha float64) *shapeComparison {
	counted, others := splitKinds(rounds, g.shape.Name, g.goal)
	s := &shapeComparison{goalOf: g, samples: collect(counted, g.shape.Name, q.view), alpha: alpha}
	if len(others) > 0 {
		s.others = collect(others, g.shape.Name, q.view)
	}
	s.separate = q.evidence.Device.Kind == DeviceGPU && s.samples.fresh
	if q.evidence.Can().Clock == ClockProcess {
		s.useWall(q.few, alpha)
	}
	s.control = draw(q.few, s.samples.control, 0.5)
	return s
}

// test tests the samples against the goal. If the samples cannot test one of the conditions, the
// shape has too few samples: the goal is not met, whatever the remaining conditions show.
func (s *shapeComparison) test(draws *stats.ResamplePlan) {
	s.tests, s.tooFew = nil, true
	if s.ratio = draw(draws, s.samples.ratios, 0.5); s.ratio != nil {
		s.ratio = s.ratio.With(s.runBias())
		var ok bool
		s.tests, ok = s.testsOf(draws, s.goal)
		s.tooFew = !ok
	}
}

// nearThreshold reports whether a p-value is so near to the error rate that the luck of few
// resamples could decide: within a factor of 5, corrections for several shapes included. Only such
// shapes are tested with many resamples.
func (s *shapeComparison) nearThreshold(alpha float64) bool {
	for _, t := range s.tests {
		for _, p := range []float64{t.meet, t.miss} {
			if p < 5*alpha && p > alpha/5/128 {
				return true
			}
		}
	}
	return false
}

// draw bootstraps a quantile. It is nil where there are too few clean rounds.
func draw(draws *stats.ResamplePlan, s stats.Sample, quantile float64) *stats.Distribution {
	d, err := draws.Quantile(s, quantile)
	if err != nil {
		return nil
	}
	return d
}

func newResamplePlan(resamples int) *stats.ResamplePlan {
	draws, err := stats.NewResamplePlan(resamples, seed)
	if err != nil {
		panic("gates: " + err.Error()) // both callers give a constant that is allowed
	}
	return draws
}

// testsOf is one test for each condition of the goal. It is not ok where the samples are too few for
// one of them.
func (s *shapeComparison) testsOf(draws *stats.ResamplePlan, goal *policy.Goal) (tests []test, ok bool) {
	ok = true
	above := func(metric, asked string, threshold float64) {
		threshold = s.raisedThreshold(threshold, s.samples.strata.medians)
		agree := agreeing(s.samples.ratios, func(round stats.Summary) bool { return round.P50 >= threshold })
		tests = append(tests, test{metric, asked, s.ratio.PAbove(threshold), s.ratio.PBelow(threshold), threshold, s.ratio, agree, len(s.samples.ratios.Rounds)})
	}
	below := func(metric, asked string, quantile, limit float64) {
		sample := s.samples.candidateTimes.Sample
		if quantile == 0.5 { // of the time that is shown
			sample = s.samples.candidateTimes.centre(len(s.samples.strata.kinds))
		}
		d := draw(draws, sample, quantile)
		if d == nil {
			ok = false
			return
		}
		d = d.With(s.runBias())
		agree := agreeing(sample, func(round stats.Summary) bool {
			return quantile == 0.5 && round.P50 <= limit || quantile == 0.9 && round.P90 <= limit
		})
		tests = append(tests, test{metric, asked, d.PBelow(limit), d.PAbove(limit), limit, d, agree, len(sample.Rounds)})
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
	return tests, ok
}

// decide gives every shape of a role its status. A shape is Open until every condition of its goal
// is proven; a goal without a test is not met.
func (c *comparison) decide(role Role) {
	var misses []float64
	for _, s := range c.judged() {
		if s.role == role && !s.settled {
			for _, t := range s.tests {
				misses = append(misses, t.miss)
			}
		}
	}
	missed := stats.Holm(misses, c.alpha)
	at := 0
	for _, s := range c.judged() {
		if s.role != role || s.settled {
			continue
		}
		proven, failed := !s.tooFew && (s.unbounded || len(s.tests) > 0), false
		for _, t := range s.tests {
			proven = proven && c.proves(t)
			failed = failed || missed[at]
			at++
		}
		switch {
		case failed:
			s.status = Failed
		case proven:
			s.status = Passed
		default:
			s.status = Open
		}
	}
}

// outcome is Failed as soon as one shape has missed, Passed when there are shapes and all of
// them have met their goals.
func (c *comparison) outcome() Status {
	met, judged := 0, c.judged()
	for _, s := range judged {
		switch s.status {
		case Failed:
			return Failed
		case Passed:
			met++
		}
	}
	if met == 0 || met < len(judged) {
		return Open
	}
	return Passed
}

// Floor is the time in microseconds that no kernel can beat on a device with cold caches; 0 where
// nothing is known about its limits.
func Floor(d Device, s Shape) float64 { return floorMicros(d, s, true) }

// floorMicros is the time that no kernel can beat: the work divided by the limits of the device.
// Memory traffic counts only where the caches were cold.
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
