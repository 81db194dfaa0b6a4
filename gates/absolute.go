package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A new kernel has nothing to be compared with. It is timed all the same, together with two more copies of itself in the place of
// the baseline and the control. Bounds on its time in microseconds are judged, bounds on a gain are not. Where the policy has no
// bound, the times are there for the reader of the next change.

// isNew reports whether there is no baseline: the kernel is new.
func (j *judgement) isNew() bool { return j.evidence.Baseline == nil }

// asksTime reports whether a gate bounds a time in microseconds.
func asksTime(gate *policy.PerformanceGate) bool {
	return slices.ContainsFunc(gate.Goals(), (*policy.Goal).Timed)
}

// timeGoals keeps the conditions of goals that bound a time in microseconds.
func timeGoals(goals []goalOf) []goalOf {
	var all []goalOf
	for _, g := range goals {
		g.goal = &policy.Goal{Shapes: g.goal.Shapes, Inputs: g.goal.Inputs, P50: g.goal.P50, P90: g.goal.P90}
		g.unbounded = !g.goal.Timed()
		all = append(all, g)
	}
	return all
}

// untimed is a new kernel without a time: the runner takes none, or the policy asks for none.
func untimed(gate *policy.PerformanceGate) GateResult {
	if !asksTime(gate) {
		return GateResult{Status: NotRun, Found: facts.NoBaseline{}}
	}
	return GateResult{Status: Missing, Reason: ReasonInconclusive, Found: facts.NoBaseline{Asked: true}}
}

// wantsTime reports whether a new kernel is to be timed although the policy asks nothing of its time.
func (j *judgement) wantsTime(r GateResult) bool {
	_, untimed := r.Found.(facts.NoBaseline)
	return untimed && r.Status == NotRun && j.isNew() && j.evidence.Performance == nil && len(TimedShapes(j.rule, j.evidence)) > 0
}

// timed judges the times of a new kernel.
func (c *comparison) timed(gate *policy.PerformanceGate, e *Evidence) GateResult {
	if c.fault != nil && asksTime(gate) {
		return unfit(c.fault)
	}
	r := GateResult{Status: Passed, Found: c.times(facts.Timed, Passed)}
	if c.fault != nil {
		r.More = append(r.More, facts.Unreliable{Why: c.fault})
		return r
	}
	outcome := c.outcome()
	if why := c.tooGood(gate, outcome); why != nil {
		return suspicious(why)
	}
	switch outcome {
	case Failed:
		r = GateResult{Status: Failed, Reason: ReasonTooSlow, Found: c.times(facts.TimesTooLong, Failed)}
		for _, s := range c.shapes {
			if s.status == Failed {
				r.Steps = append(r.Steps, facts.BringWithin{Shape: s.shape.Label(), Asked: s.goal.String()})
			}
		}
	case Open:
		r = c.undecided(e.Performance)
		r.Found = c.times(facts.TimesUndecided, Open)
	}
	return r
}

// tooGood finds times below what the device can do, and a bound that is met only in a batch or by what earlier launches left behind.
func (c *comparison) tooGood(gate *policy.PerformanceGate, outcome Status) facts.Fact {
	if why := c.belowFloor(gate); why != nil || !asksTime(gate) {
		return why
	}
	if c.overclaimed != nil || outcome != Passed {
		return c.overclaimed
	}
	for _, s := range c.shapes {
		if found := s.dependsOnState(c.few); found.p <= c.alpha {
			return found.fact
		}
	}
	return nil
}

// times is the shapes of a status with their times.
func (c *comparison) times(result facts.TimesResult, status Status) facts.Times {
	t := facts.Times{Result: result, Rounds: c.rounds}
	for _, s := range c.shapes {
		if s.status == status {
			t.Shapes = append(t.Shapes, s.timeOf(s.alpha))
		}
	}
	return t
}

func (s *shapeComparison) timeOf(alpha float64) facts.ShapeTime {
	t := facts.ShapeTime{Shape: s.shape.Label(), TooFew: s.ratio == nil || s.tooFew && s.status == Open, Micros: s.samples.time(s.samples.candidateTimes)}
	for _, test := range s.tests {
		lower, upper := test.dist.Bounds(alpha)
		t.Asked = append(t.Asked, facts.TimeAsked{Metric: test.metric, Value: test.dist.Estimate, Lower: lower, Upper: upper, Asked: test.asked})
	}
	if p50 := stats.Describe(s.samples.candidate).P50; s.floor > 0 && p50 > 0 {
		t.Roofline = s.floor / p50
	}
	return t
}

// withoutBaseline removes from rows the figures that compare a kernel with itself.
func withoutBaseline(rows []Comparison) []Comparison {
	for i := range rows {
		rows[i].Baseline, rows[i].Speedup, rows[i].LatencyReduction, rows[i].SoloShift, rows[i].Alone, rows[i].Detectable = nil, Estimate{}, Estimate{}, nil, nil, 0
	}
	return rows
}
