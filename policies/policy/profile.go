package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
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

func (g ProfileGate) String() string {
	text := conditions(g.All, " and ")
	if len(g.Any) > 0 {
		if text != "" {
			text += ", and "
		}
		text += "one of " + conditions(g.Any, " or ")
	}
	return fmt.Sprintf("on %s: %s", g.Shapes, text)
}

// compare pairs conditions by their metric. An additional condition in any is one more way
// to meet it.
func (g *ProfileGate) compare(l *compare.List, path string, old *ProfileGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, g.Shapes, compare.Tightens)
	was, wasOnce := byMetric(old.All)
	is, isOnce := byMetric(g.All)
	if !wasOnce || !isOnce {
		l.Unknown(path+".all", old.All, g.All)
	} else {
		for _, m := range metrics(old.All, g.All) {
			compareBound(l, path+".all["+m+"]", was[m], is[m], compare.Tightens)
		}
	}
	within := func(a, b []MetricCondition) bool {
		return len(b) == 0 || len(a) > 0 && !slices.ContainsFunc(a, func(c MetricCondition) bool { return !slices.Contains(b, c) })
	}
	either := func(list []MetricCondition) string { return cmp.Or(conditions(list, " or "), compare.None) }
	l.Way(path+".any", either(old.Any), either(g.Any), within(g.Any, old.Any), within(old.Any, g.Any))
}

func byMetric(list []MetricCondition) (bounds map[string]*quantity.Bound[quantity.Number], once bool) {
	bounds = map[string]*quantity.Bound[quantity.Number]{}
	for _, c := range list {
		bounds[c.Metric] = &c.Is
	}
	return bounds, len(bounds) == len(list)
}

// Metrics returns the names of the counters that the gate reads.
func (g *ProfileGate) Metrics() []string { return metrics(g.All, g.Any) }

func metrics(lists ...[]MetricCondition) []string {
	var names []string
	for _, c := range slices.Concat(lists...) {
		names = append(names, c.Metric)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func conditions(list []MetricCondition, join string) string {
	var words []string
	for _, c := range list {
		words = append(words, c.Metric+" "+c.Is.String())
	}
	return strings.Join(words, join)
}

func (g *ProfileGate) fill(*strict.Node) { g.Shapes.fill() }

func (g *ProfileGate) check(n *strict.Node, _ rest) {
	if len(g.All)+len(g.Any) == 0 {
		n.Errorf("asks for no metric (write all or any)")
	}
}

func (g *ProfileGate) narrow([]string, []int64) *ProfileGate { return g }

func (g *ProfileGate) inputs() []Inputs { return []Inputs{{"profile.shapes", g.Shapes, false}} }
