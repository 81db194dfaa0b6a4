package gates

import "strings"

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
