package gates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Weights say how often a step of a program launches the kernel at each shape, and what else is known
// of the step. They are of the base's manifest.
type Weights struct {
	Launches  map[string]float64 `json:"launches"`            // per step, by shape
	Warm      []string           `json:"warm,omitempty"`      // shapes whose launches find their inputs in the L2 cache
	Kernel    float64            `json:"kernel_us,omitempty"` // of all these launches, in the trace
	Step      float64            `json:"step_us,omitempty"`   // of the whole step, in the trace
	Unmatched float64            `json:"unmatched,omitempty"` // launches per step at sizes that no shape has
	Tool      string             `json:"tool,omitempty"`      // whose trace was read
	Trace     string             `json:"trace,omitempty"`     // its digest
}

// problem is the first field that the judge cannot use.
func (w *Weights) problem() (field, problem string) {
	if w == nil {
		return "", ""
	}
	if len(w.Launches) == 0 {
		return "weights.launches", "is empty"
	}
	for shape, launches := range w.Launches {
		if !(launches > 0) || math.IsInf(launches, 0) {
			return "weights.launches", fmt.Sprintf("has %v launches of %q", launches, shape)
		}
	}
	for _, shape := range w.Warm {
		if w.Launches[shape] == 0 {
			return "weights.warm", fmt.Sprintf("names %q, of which there are no launches", shape)
		}
	}
	for field, v := range map[string]float64{"kernel_us": w.Kernel, "step_us": w.Step, "unmatched": w.Unmatched} {
		if v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return "weights." + field, fmt.Sprintf("is %v", v)
		}
	}
	if w.Step > 0 && w.Kernel > w.Step {
		return "weights.kernel_us", fmt.Sprintf("is %v, more than the whole step", w.Kernel)
	}
	return "", ""
}

// of is the launches per step of a shape, in whatever context; 0 where it has no weight.
func (w *Weights) of(shape Shape) float64 {
	if w == nil || shape.Secret {
		return 0
	}
	return w.Launches[shape.Listed()]
}

// lackWeights is the names of the shapes that have a weight and that the evidence is not about, because one of the sides does
// not support them.
func (e *Evidence) lackWeights() []string {
	names := e.shapeNames()
	var lacking []string
	for name := range e.Weights.Launches {
		if !slices.Contains(names, name) {
			lacking = append(lacking, name)
		}
	}
	slices.Sort(lacking)
	return lacking
}

// sumContexts is the contexts in which the sum is made, as shapes have them: "" is cold. Where the weights name warm shapes, a goal must be met twice: with every
// launch from a cold cache, and with those from a warm one, because a launch in a program is between the two. A sum that is only for
// information takes the launches that are timed anyway, and those are cold.
func (e *Evidence) sumContexts(gate *policy.PerformanceGate) []policy.Context {
	if gate.Weighted() == nil || e.Weights == nil || len(e.Weights.Warm) == 0 {
		return []policy.Context{""}
	}
	return []policy.Context{"", policy.Warm}
}

// weighedNames is the names of the shapes that a sum counts: in a warm context, the warm ones from a warm cache.
func (e *Evidence) weighedNames(context policy.Context) []string {
	var names []string
	for _, name := range e.shapeNames() {
		switch {
		case e.Weights == nil || e.Weights.Launches[name] == 0:
		case context == policy.Warm && slices.Contains(e.Weights.Warm, name):
			names = append(names, Shape{Name: name}.In(context).Name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// allWeighed is the names of the shapes that any sum of the gate counts.
func (e *Evidence) allWeighed(gate *policy.PerformanceGate) []string {
	var names []string
	for _, context := range e.sumContexts(gate) {
		names = append(names, e.weighedNames(context)...)
	}
	return names
}

// weighed is the shapes that a sum counts, in the order of the evidence.
func (e *Evidence) weighed(context policy.Context) []Shape {
	names := e.weighedNames(context)
	return slices.DeleteFunc(slices.Clone(e.Shapes), func(s Shape) bool { return s.Secret || !slices.Contains(names, s.Name) })
}

// timesFor reports whether a shape is timed because a goal asks for the weighted sum.
func (e *Evidence) timesFor(gate *policy.PerformanceGate, s Shape) bool {
	return gate.Weighted() != nil && !s.Secret && slices.Contains(e.allWeighed(gate), s.Name)
}

// A WeightedSpeed is all launches of a step together: the sum over the shapes of launches × time.
type WeightedSpeed struct {
	Context   policy.Context  `json:"context,omitempty"` // warm where launches of some shapes are; "" where all are cold
	Role      Role            `json:"role"`              // target, guard, or info where the policy asks nothing of it
	Goal      string          `json:"goal,omitempty"`
	Status    Status          `json:"status,omitempty"`
	Baseline  float64         `json:"baseline_us"`  // per step
	Candidate float64         `json:"candidate_us"` // per step: the baseline's time divided by the speedup
	Speedup   Estimate        `json:"speedup"`
	Saved     Span            `json:"saved_us"` // microseconds per step
	Shapes    []WeightedShape `json:"shapes"`
	Rounds    int             `json:"rounds"` // that all of the shapes have
	Step      *WholeStep      `json:"step,omitempty"`
	Unmatched float64         `json:"unmatched,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Trace     string          `json:"trace,omitempty"`
}

// Comparison is the sum as a row among those of the shapes.
func (w *WeightedSpeed) Comparison() Comparison {
	return Comparison{
		Shape: stepLabel(w.Context), Role: w.Role, Goal: strings.TrimPrefix(w.Goal, "weighted "), Status: w.Status,
		Baseline: &stats.Summary{P50: w.Baseline}, Candidate: &stats.Summary{P50: w.Candidate},
		Speedup: w.Speedup,
	}
}

// Sums is all launches of a step: cold and, where the weights name warm shapes, with those warm.
func (v *Verdict) Sums() []*WeightedSpeed {
	return slices.DeleteFunc([]*WeightedSpeed{v.Weighted, v.WeightedWarm}, func(w *WeightedSpeed) bool { return w == nil })
}

// Judged is what the policy asks a speed of: all launches of a step first, where it asks about them, and the shapes. Of two sums
// the one that gained less comes first.
func (v *Verdict) Judged() []Comparison {
	sums := v.judgedSums()
	if len(sums) == 0 {
		return v.Comparisons
	}
	return append(sums, v.Comparisons...)
}

func (v *Verdict) judgedSums() []Comparison {
	var all []Comparison
	for _, w := range v.Sums() {
		if w.Role != RoleInfo {
			all = append(all, w.Comparison())
		}
	}
	slices.SortStableFunc(all, func(a, b Comparison) int { return cmp.Compare(a.Speedup.Value, b.Speedup.Value) })
	return all
}

// A Span is a figure with its interval.
type Span struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
}

// A WeightedShape is the part of one shape.
type WeightedShape struct {
	Shape     string  `json:"shape"`
	Launches  float64 `json:"launches"`     // per step
	Baseline  float64 `json:"baseline_us"`  // of one launch
	Candidate float64 `json:"candidate_us"` // of one launch
	Share     float64 `json:"share"`        // of the baseline's time in all launches
}

// A WholeStep is what the gain of the kernel means for the step, by Amdahl's law: the rest of the step
// takes as long as before.
type WholeStep struct {
	Micros  float64  `json:"us"`             // in the trace
	Share   float64  `json:"share"`          // of the step that the kernel takes
	Speedup Estimate `json:"speedup"`        // of the step
	Most    float64  `json:"most,omitempty"` // of the step, if the kernel took no time; 0 where it is all of the step
}

// wholeStep is not known where the weights have no time of a step.
func (w *Weights) wholeStep(baseline float64, speedup Estimate) *WholeStep {
	if w.Step <= 0 {
		return nil
	}
	kernel := w.Kernel
	if kernel == 0 {
		kernel = min(baseline, w.Step)
	}
	share := kernel / w.Step
	of := func(speedup float64) float64 { return round(1/(1-share+share/(1+speedup)) - 1) }
	whole := &WholeStep{Micros: round(w.Step), Share: round(share), Speedup: Estimate{Value: of(speedup.Value)}}
	if speedup.Lower != nil {
		whole.Speedup.Lower, whole.Speedup.Upper = new(of(*speedup.Lower)), new(of(*speedup.Upper))
	}
	if share < 1 {
		whole.Most = round(1/(1-share) - 1)
	}
	return whole
}

// saved is what a speedup saves of a time. The time counts as exact: it is known far better than the difference.
func saved(baseline float64, speedup Estimate) Span {
	of := func(speedup float64) float64 { return round(baseline * (1 - 1/(1+speedup))) }
	s := Span{Value: of(speedup.Value)}
	if speedup.Lower != nil {
		s.Lower, s.Upper = new(of(*speedup.Lower)), new(of(*speedup.Upper))
	}
	return s
}
