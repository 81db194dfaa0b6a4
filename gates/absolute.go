package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A new kernel has nothing to be compared with. It is timed all the same, beside two more copies of itself in the baseline's and the
// control's place: what a policy asks of its time in microseconds is judged, what it asks of a gain is not, and where it asks
// nothing the figures are what the next change is compared with by whoever reads them.

// alone tells whether there is no baseline: the kernel is new.
func (j *judgement) alone() bool { return j.evidence.Baseline == nil }

// asksTime tells whether a gate bounds a time by itself.
func asksTime(gate *policy.PerformanceGate) bool {
	return slices.ContainsFunc(gate.Goals(), (*policy.Goal).Timed)
}

// ofTime leaves of goals what they ask of a time.
func ofTime(goals []goalOf) []goalOf {
	var all []goalOf
	for _, g := range goals {
		g.goal = &policy.Goal{Shapes: g.goal.Shapes, P50: g.goal.P50, P90: g.goal.P90}
		g.unasked = !g.goal.Timed()
		all = append(all, g)
	}
	return all
}

// untimed is a new kernel without a time: evidence of a runner that takes none, or none was asked for.
func untimed(gate *policy.PerformanceGate) GateResult {
	const text = "there is no baseline: the kernel is new"
	if !asksTime(gate) {
		return GateResult{Status: NotRun, Text: text}
	}
	return GateResult{Status: Missing, Reason: ReasonInconclusive, Text: text + ", and nothing was timed"}
}

// wantsTime tells whether a new kernel is to be timed although nothing is asked of its time.
func (j *judgement) wantsTime(r GateResult) bool {
	gate := j.rule.Gates.Performance
	return gate != nil && r.Status == NotRun && j.alone() && j.evidence.Performance == nil && r.Text == untimed(gate).Text && len(TimedShapes(j.rule, j.evidence)) > 0
}

// timed judges the times of a new kernel.
func (c *comparison) timed(gate *policy.PerformanceGate, e *Evidence) GateResult {
	r := GateResult{Status: Passed, Text: "Timed, with nothing to compare with: " + c.times(Passed)}
	if c.fault != "" && asksTime(gate) {
		return c.result(gate, e)
	}
	if c.fault != "" {
		r.Details = append(r.Details, "The times are not to be relied on: "+c.fault)
		return r
	}
	outcome := c.outcome()
	if why := c.tooGood(gate, outcome); why != "" {
		return suspicious(why)
	}
	switch outcome {
	case Failed:
		r = GateResult{Status: Failed, Reason: ReasonTooSlow, Text: "Too slow: " + c.times(Failed)}
		for _, s := range c.shapes {
			if s.status == Failed {
				r.ToPass = append(r.ToPass, fmt.Sprintf("bring the time of %s within what is asked (%s)", s.shape.Label(), s.goal))
			}
		}
	case Open:
		r = c.undecided(e.Performance)
		r.Text = fmt.Sprintf("Not decided after %d rounds: %s", c.rounds, c.times(Open))
	}
	return r
}

// tooGood finds times below what the device can do, and a bound that is met only in a batch or by what earlier launches left behind.
func (c *comparison) tooGood(gate *policy.PerformanceGate, outcome Status) string {
	if why := c.belowFloor(gate); why != "" || !asksTime(gate) {
		return why
	}
	if c.overclaimed != "" || outcome != Passed {
		return c.overclaimed
	}
	for _, s := range c.shapes {
		if p, why := s.keeps(c.few); p <= c.alpha {
			return why
		}
	}
	return ""
}

// times names the shapes of a status with their times.
func (c *comparison) times(status Status) string {
	var parts []string
	for _, s := range c.shapes {
		if s.status != status {
			continue
		}
		if s.ratio == nil || s.clueless && status == Open {
			parts = append(parts, s.shape.Label()+" has too few clean samples")
			continue
		}
		text := fmt.Sprintf("%s %.4g\u00a0µs", s.shape.Label(), s.samples.time(s.samples.latencies))
		var asked []string
		for _, t := range s.tests {
			lower, upper := t.dist.Bounds(c.alpha)
			asked = append(asked, fmt.Sprintf("%s %.4g\u00a0µs [%.4g, %.4g], asked %s", t.metric, t.dist.Estimate, lower, upper, t.asked))
		}
		if len(asked) > 0 {
			text = s.shape.Label() + " " + strings.Join(asked, " and ")
		}
		if p50 := stats.Describe(s.samples.candidate).P50; s.floor > 0 && p50 > 0 {
			text += fmt.Sprintf(" (%s of the roofline)", percent(s.floor/p50))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// withoutBaseline takes out of rows what compares a kernel with itself.
func withoutBaseline(rows []Comparison) []Comparison {
	for i := range rows {
		rows[i].Baseline, rows[i].Speedup, rows[i].LatencyReduction, rows[i].SoloShift, rows[i].Alone, rows[i].Detectable = nil, Estimate{}, Estimate{}, nil, nil, 0
	}
	return rows
}
