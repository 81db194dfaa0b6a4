package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// profile holds the profiler's counters against the policy: every condition of
// all, and one of any, on every shape that was profiled.
func (j *judgement) profile() GateResult {
	gate, p := j.rule.Gates.Profile, j.evidence.Profile
	switch {
	case p == nil:
		return GateResult{Status: Missing, Text: "no profile was taken"}
	case p.Skipped != "":
		// No permission to profile says nothing about the code.
		j.notes = append(j.notes, "The profile gate was skipped: "+p.Skipped)
		return GateResult{Status: NotRun, Text: "skipped: " + p.Skipped}
	}
	var failures, missing []string
	for _, shape := range gate.Shapes.Pick(j.evidence.shapeNames()) {
		f, m := j.profileShape(gate, p, shape)
		failures, missing = append(failures, f...), append(missing, m...)
	}
	switch {
	case len(failures) > 0:
		return GateResult{
			Status: Failed, Reason: ReasonProfile,
			Text:   "The profile is not what the policy asks: " + strings.Join(failures, "; "),
			ToPass: failures,
		}
	case len(missing) > 0:
		return GateResult{Status: Missing, Text: "not counted: " + strings.Join(missing, ", ")}
	}
	return GateResult{Status: Passed, Text: fmt.Sprintf("%d metrics as asked", len(j.metrics))}
}

func (j *judgement) profileShape(gate *policy.ProfileGate, p *Profile, shape string) (failures, missing []string) {
	check := func(c policy.MetricCondition) (Status, string) {
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
		if row.Value == nil {
			return row.Status, c.Metric
		}
		return row.Status, fmt.Sprintf("%s: %s is %.4g (asked %s)", shape, c.Metric, *row.Value, c.Is)
	}
	for _, c := range gate.All {
		switch status, text := check(c); status {
		case Failed:
			failures = append(failures, text)
		case Missing:
			missing = append(missing, text)
		}
	}
	var tried, unknown []string
	met, first := len(gate.Any) == 0, len(j.metrics)
	for _, c := range gate.Any {
		status, text := check(c)
		switch status {
		case Passed:
			met = true
		case Failed:
			tried = append(tried, text)
		case Missing:
			unknown = append(unknown, text)
		}
	}
	switch {
	case met:
		// One is enough: what the others are stands in nobody's way.
		for i := range j.metrics[first:] {
			if row := &j.metrics[first+i]; row.Status == Failed || row.Status == Missing {
				row.Status = Informs
			}
		}
	case len(unknown) > 0:
		missing = append(missing, unknown...)
	default:
		failures = append(failures, "none of: "+strings.Join(tried, ", "))
	}
	return failures, missing
}

// MetricDuration is how long ncu saw a kernel run. It weighs the kernels of a launch of several
// against each other, and is no timing.
const MetricDuration = "gpu__time_duration.sum"

// of is a counter of a launch on one shape; nil where it was not counted. Of several kernels it is
// the sum where the counter is one (….sum), and else the mean by the time that each ran; steps is
// what each of them counted.
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

// same tells whether two rows show the same counter.
func (r MetricRow) same(other MetricRow) bool {
	return r.Shape == other.Shape && r.Metric == other.Metric && r.Limit == other.Limit
}
