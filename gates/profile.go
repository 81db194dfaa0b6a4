package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// profile compares the profiler's counters with the policy: every condition of all, and one of any,
// on every profiled shape.
func (j *judgement) profile() GateResult {
	gate, p := j.rule.Gates.Profile, j.evidence.Profile
	switch {
	case p == nil:
		return GateResult{Status: Missing, Found: facts.NoProfile{}}
	case p.Skipped != "":
		// No permission to profile says nothing about the code.
		j.note(facts.ProfileSkippedNote{Why: p.Skipped})
		return GateResult{Status: NotRun, Found: facts.ProfileSkipped{Why: p.Skipped}}
	}
	var missed []facts.Fact
	var missing []string
	for _, shape := range gate.Shapes.Pick(j.evidence.shapeNames()) {
		f, m := j.profileShape(gate, p, shape)
		missed, missing = append(missed, f...), append(missing, m...)
	}
	switch {
	case len(missed) > 0:
		r := GateResult{Status: Failed, Reason: ReasonProfile, Found: facts.ProfileMissed{Missed: missed}}
		for _, f := range missed {
			r.Steps = append(r.Steps, facts.Stated{Fact: f})
		}
		return r
	case len(missing) > 0:
		return GateResult{Status: Missing, Found: facts.NotCounted{Metrics: missing}}
	}
	var hold facts.MetricsHold
	for _, row := range j.metrics {
		switch row.Status {
		case Passed:
			hold.Metrics++
		case Informs:
			hold.Metrics, hold.Beyond = hold.Metrics+1, hold.Beyond+1
		}
	}
	return GateResult{Status: Passed, Found: hold}
}

func (j *judgement) profileShape(gate *policy.ProfileGate, p *Profile, shape string) (failures []facts.Fact, missing []string) {
	check := func(c policy.MetricCondition) (Status, facts.MetricMissed) {
		row := MetricRow{Shape: shape, Metric: c.Metric, Limit: c.Is.String(), Status: Missing}
		value, unit, steps := p.of(shape, c.Metric)
		if value != nil {
			row.Value, row.Unit, row.Status = value, unit, Failed
			if c.Is.Holds(*value) {
				row.Status = Passed
			}
		}
		j.metrics = append(j.metrics, row)
		for _, m := range steps {
			if each := (MetricRow{Shape: shape, Metric: fmt.Sprintf("%d. %s: %s", m.Step, m.Kernel, c.Metric), Value: &m.Value, Unit: m.Unit, Status: NotRun}); !slices.ContainsFunc(j.metrics, each.same) {
				j.metrics = append(j.metrics, each)
			}
		}
		missed := facts.MetricMissed{Shape: shape, Metric: c.Metric, Asked: c.Is.String()}
		if row.Value != nil {
			missed.Value = *row.Value
		}
		return row.Status, missed
	}
	for _, c := range gate.All {
		switch status, missed := check(c); status {
		case Failed:
			failures = append(failures, missed)
		case Missing:
			missing = append(missing, c.Metric)
		}
	}
	var tried []facts.MetricMissed
	var unknown []string
	met, first := len(gate.Any) == 0, len(j.metrics)
	for _, c := range gate.Any {
		status, missed := check(c)
		switch status {
		case Passed:
			met = true
		case Failed:
			tried = append(tried, missed)
		case Missing:
			unknown = append(unknown, c.Metric)
		}
	}
	switch {
	case met:
		// One condition is enough: the rest only inform.
		for i := range j.metrics[first:] {
			if row := &j.metrics[first+i]; row.Status == Failed || row.Status == Missing {
				row.Status = Informs
			}
		}
	case len(unknown) > 0:
		missing = append(missing, unknown...)
	default:
		failures = append(failures, facts.NoneMet{Missed: tried})
	}
	return failures, missing
}

// MetricDuration is how long ncu saw a kernel run. It weighs the kernels of a launch of several; it
// is no timing.
const MetricDuration = "gpu__time_duration.sum"

// of is a counter of a launch on one shape; nil where it was not counted. For several kernels it is
// the sum where the counter is one (….sum), and else their mean weighted by the time of each; steps
// is the counter of each kernel.
func (p *Profile) of(shape, name string) (value *float64, unit string, steps []Metric) {
	durations := map[int]float64{}
	for _, m := range p.Metrics {
		if m.Shape == shape && m.Name == MetricDuration {
			durations[m.Step] = m.Value
		}
	}
	var sum, weighed, weight float64
	for _, m := range p.Metrics {
		if m.Shape != shape || m.Name != name {
			continue
		}
		if m.Step == 0 {
			return &m.Value, m.Unit, nil
		}
		steps, unit = append(steps, m), m.Unit
		sum += m.Value
		weighed += m.Value * durations[m.Step]
		weight += durations[m.Step]
	}
	switch {
	case len(steps) == 0:
		return nil, "", nil
	case strings.HasSuffix(name, ".sum"):
		return &sum, unit, steps
	case weight <= 0:
		return nil, unit, steps
	}
	return new(weighed / weight), unit, steps
}

// same reports whether two rows show the same counter.
func (r MetricRow) same(other MetricRow) bool {
	return r.Shape == other.Shape && r.Metric == other.Metric && r.Limit == other.Limit
}
