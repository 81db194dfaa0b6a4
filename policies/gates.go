package policies

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Gates are what a change must pass, in this order. A gate set to none is not
// run.
type Gates struct {
	Build       BuildGate        `yaml:"build" doc:"The kernel compiles."`
	PTXAS       *PTXASGate       `yaml:"ptxas" doc:"Registers, shared memory, spills and occupancy as the compiler reports them."`
	Correctness *CorrectnessGate `yaml:"correctness" doc:"The output against the reference."`
	Performance *PerformanceGate `yaml:"performance" doc:"The candidate against the baseline, by interval."`
	Profile     *ProfileGate     `yaml:"profile" doc:"Conditions on profiler metrics."`
}

// Enforcement is what every gate can say of itself.
type Enforcement struct {
	Required *bool             `yaml:"required" doc:"false: the gate informs and does not decide. Default true."`
	Timeout  quantity.Duration `yaml:"timeout" eg:"10m" doc:"The gate's work is stopped after this long."`
}

// Decides tells whether the gate can defer a change.
func (e Enforcement) Decides() bool { return e.Required == nil || *e.Required }

// A BuildGate has nothing to ask but a compiler's success in time.
type BuildGate struct {
	Enforcement
}

// A PTXASGate bounds what the compiler says of the candidate.
type PTXASGate struct {
	Enforcement
	Registers     *CountBudget                    `yaml:"registers" doc:"Registers per thread."`
	StaticShared  *BytesBudget                    `yaml:"static_shared_memory" doc:"Shared memory that the source declares, per block."`
	DynamicShared *BytesBudget                    `yaml:"dynamic_shared_memory" doc:"Shared memory that the launch asks for, per block, at the largest shape."`
	Shared        *BytesBudget                    `yaml:"shared_memory" doc:"Static and dynamic together."`
	SpillStores   *BytesBudget                    `yaml:"spill_stores"`
	SpillLoads    *BytesBudget                    `yaml:"spill_loads"`
	Stack         *BytesBudget                    `yaml:"stack" doc:"Stack frame per thread."`
	CodeSize      *BytesBudget                    `yaml:"code_size" doc:"Machine code of the kernel."`
	BlocksPerSM   *quantity.Bound[quantity.Count] `yaml:"blocks_per_sm" eg:">= 2" doc:"Occupancy, from the architecture's tables."`
}

// A Budget is a limit, and how much the candidate may add to the baseline.
type Budget[T quantity.Count | quantity.Bytes] struct {
	Max      *T                 `yaml:"max"`
	Increase *quantity.Bound[T] `yaml:"increase" doc:"Candidate minus baseline."`
}

// The two budgets: of things and of bytes.
type (
	CountBudget = Budget[quantity.Count]
	BytesBudget = Budget[quantity.Bytes]
)

// UnmarshalStrict also reads the short form: registers: "<= 128".
func (b *Budget[T]) UnmarshalStrict(n *strict.Node) {
	if _, scalar := n.Text(); scalar {
		var limit quantity.Bound[T]
		n.Decode(&limit)
		if limit.Op != quantity.AtMost && limit.Op != "" {
			n.Errorf("%q is not an upper limit (write \"<= %s\")", limit, fmt.Sprint(limit.Value))
			return
		}
		b.Max = &limit.Value
		return
	}
	type fields Budget[T] // without this method
	n.Decode((*fields)(b))
	if b.Max == nil && b.Increase == nil {
		n.Errorf("sets no limit (write max or increase)")
	}
}

func (b *Budget[T]) JSONSchema() map[string]any {
	var bound quantity.Bound[T]
	var value T
	one := any(&value).(strict.Schemer).JSONSchema()
	return map[string]any{"anyOf": []any{
		bound.JSONSchema(),
		map[string]any{
			"type": "object", "additionalProperties": false,
			"properties": map[string]any{"max": one, "increase": bound.JSONSchema()},
		},
	}}
}

// A ProfileGate asks for profiler metrics: every one of All, and at least one
// of Any where there are any.
type ProfileGate struct {
	Enforcement
	Shapes Shapes            `yaml:"shapes" doc:"The shapes to profile."`
	All    []MetricCondition `yaml:"all"`
	Any    []MetricCondition `yaml:"any"`
}

// A MetricCondition is one line such as dram__throughput…: "< 50%".
type MetricCondition struct {
	Metric string
	Is     quantity.Bound[quantity.Number]
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`)

func (m *MetricCondition) UnmarshalStrict(n *strict.Node) {
	pairs := n.Pairs()
	if len(pairs) != 1 {
		n.Errorf("is not one metric with its condition (write e.g. - sm__throughput.avg.pct_of_peak_sustained_elapsed: \">= 50%%\")")
		return
	}
	if !metricName.MatchString(pairs[0].Key) {
		pairs[0].Errorf("is not a metric name (write e.g. sm__throughput.avg.pct_of_peak_sustained_elapsed)")
	}
	m.Metric = pairs[0].Key
	pairs[0].Value.Decode(&m.Is)
}

func (m *MetricCondition) JSONSchema() map[string]any {
	var bound quantity.Bound[quantity.Number]
	return map[string]any{
		"type": "object", "minProperties": 1, "maxProperties": 1,
		"additionalProperties": bound.JSONSchema(),
	}
}

// Shapes names shapes of the kernel's manifest; All stands for every one.
type Shapes struct {
	All   bool
	Names []string
}

func (s *Shapes) UnmarshalStrict(n *strict.Node) {
	if text, ok := n.Text(); ok {
		if text != "all" {
			n.Errorf("%q is not a list of shapes (write all, or [mission, long])", text)
			return
		}
		*s = Shapes{All: true}
		return
	}
	*s = Shapes{}
	n.Decode(&s.Names)
	if len(s.Names) == 0 && n.List() {
		n.Errorf("is empty (write all, or [mission, long])")
	}
	for i, item := range n.Items() {
		if slices.Contains(s.Names[:i], s.Names[i]) {
			item.Errorf("%q is named twice", s.Names[i])
		}
	}
}

func (s *Shapes) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"const": "all"},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1},
	}}
}

// Pick is the shapes that are meant, out of those that the manifest has, in
// the manifest's order.
func (s Shapes) Pick(known []string) []string {
	if s.All {
		return known
	}
	var picked []string
	for _, k := range known {
		if slices.Contains(s.Names, k) {
			picked = append(picked, k)
		}
	}
	return picked
}

// Unknown is the names that the manifest does not have.
func (s Shapes) Unknown(known []string) []string {
	var unknown []string
	for _, name := range s.Names {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func (s Shapes) String() string {
	if s.All {
		return "all shapes"
	}
	return strings.Join(s.Names, ", ")
}

// DefaultGates is what a policy starts from: a build in time, and nothing else
// asked.
func DefaultGates() Gates {
	return Gates{Build: BuildGate{Enforcement{Timeout: quantity.Duration(10 * time.Minute)}}}
}

// check looks at combinations that no single field can see.
func (g *Gates) check(n *strict.Node) {
	if g.Correctness != nil {
		g.Correctness.check(n.Child("correctness"))
	}
	if g.Performance != nil {
		g.Performance.check(n.Child("performance"))
		if g.Correctness == nil || !g.Correctness.Decides() {
			n.Child("performance").Errorf("a kernel's speed is judged only after its output (add a required correctness gate)")
		}
	}
	if g.Profile != nil && len(g.Profile.All)+len(g.Profile.Any) == 0 {
		n.Child("profile").Errorf("asks for no metric (write all or any)")
	}
}
