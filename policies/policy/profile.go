package policy

import (
	"regexp"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A ProfileGate puts conditions on profiler metrics: all of All, and at least one of Any if there
// are any.
type ProfileGate struct {
	Enforcement
	Deadline
	Shapes Shapes            `yaml:"shapes" eg:"[mission]" default:"all" doc:"Shapes to profile."`
	All    []MetricCondition `yaml:"all" eg:"[{sm__throughput.avg.pct_of_peak_sustained_elapsed: \">= 50%\"}]" doc:"All of these conditions must hold."`
	Any    []MetricCondition `yaml:"any" eg:"[{dram__throughput.avg.pct_of_peak_sustained_elapsed: \">= 60%\"}]" doc:"At least one of these conditions must hold."`
}

// A MetricCondition is one line such as dram__throughput…: "< 50%".
type MetricCondition struct {
	Metric string
	Is     quantity.Bound[quantity.Number]
}

var metricName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$`)

// IsMetric reports whether a profiler counter may have that name.
func IsMetric(name string) bool { return metricName.MatchString(name) }

func (m *MetricCondition) UnmarshalStrict(n *strict.Node) {
	pairs := n.Pairs()
	if len(pairs) != 1 {
		n.Errorf("is not one metric with its condition (write e.g. - sm__throughput.avg.pct_of_peak_sustained_elapsed: \">= 50%%\")")
		return
	}
	if !IsMetric(pairs[0].Key) {
		pairs[0].Errorf("is not a metric name (write e.g. sm__throughput.avg.pct_of_peak_sustained_elapsed)")
	}
	m.Metric = pairs[0].Key
	pairs[0].Value.Decode(&m.Is)
}

func (m *MetricCondition) JSONSchema() map[string]any {
	var bound quantity.Bound[quantity.Number]
	return map[string]any{
		"title": "metric condition",
		"type":  "object", "minProperties": 1, "maxProperties": 1,
		"propertyNames":        map[string]any{"pattern": metricName.String()},
		"additionalProperties": bound.JSONSchema(),
	}
}
