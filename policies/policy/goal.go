package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Goal is a set of conditions on shapes. Speedup is baseline/candidate − 1, latency reduction is
// 1 − candidate/baseline; p50 and p90 are the candidate's own latency. Weighted is the speedup of the
// sum over all shapes, each with its launches per step.
type Goal struct {
	Shapes           Shapes                            `yaml:"shapes" eg:"[mission]" default:"all" doc:"Shapes of the manifest."`
	Inputs           GoalInputs                        `yaml:"inputs" eg:"recorded" default:"random" doc:"Kinds of inputs that the goal is about. random: all except recordings. recorded: only recordings; on a shape without any, all kinds. The other kinds may not lose more than the guard allows."`
	Context          Contexts                          `yaml:"context" eg:"[cold, warm]" default:"cold" doc:"How the launches begin. cold: the caches are empty. warm: the L2 cache has the arguments. A goal with both asks the same of each."`
	Speedup          *quantity.Bound[quantity.Percent] `yaml:"speedup" eg:">= +10%" bounds:"(>= or >, above -100%)" doc:"baseline/candidate − 1."`
	LatencyReduction *quantity.Bound[quantity.Percent] `yaml:"latency_reduction" eg:">= 9%" bounds:"(>= or >, below 100%)" doc:"1 − candidate/baseline."`
	P50              *quantity.Bound[quantity.Micros]  `yaml:"p50" eg:"<= 5us" bounds:"(<= or <, above 0us)" doc:"The candidate's median latency."`
	P90              *quantity.Bound[quantity.Micros]  `yaml:"p90" eg:"<= 6us" bounds:"(<= or <, above 0us)" doc:"The 90th percentile of the candidate's latency."`
	Weighted         *quantity.Bound[quantity.Percent] `yaml:"weighted" eg:">= +3%" bounds:"(>= or >, above -100%)" doc:"baseline/candidate − 1 of the time that all launches of a step take, by the manifest's weights. It needs every shape that has a weight, and no shapes: the weights name them."`
	BelowBest        *quantity.Bound[quantity.Percent] `yaml:"below_best" eg:"<= 8%" bounds:"(<= or <, 0% to below 100%)" doc:"How far the kernel, with this change, may be below its fastest merged state. It needs a second condition next to it."`
}

// GoalInputs says which kinds of input a goal is about. A kernel that is faster on recordings only knows them, perhaps; so
// a goal is about random inputs unless the policy says otherwise.
type GoalInputs string

const (
	InputsRandom   GoalInputs = "random"
	InputsRecorded GoalInputs = "recorded"
)

var goalInputs = []GoalInputs{InputsRandom, InputsRecorded}

func (i *GoalInputs) UnmarshalStrict(n *strict.Node) { strict.Word(n, i, goalInputs) }
func (i *GoalInputs) JSONSchema() map[string]any     { return strict.WordSchema(goalInputs) }

// Counts returns the kinds of input, among those that a shape was timed on, that the goal is about.
func (g *Goal) Counts(timed []string) []string {
	recorded := func(kind string) bool { return distribution.Kind(kind).FromRecording() }
	if !slices.ContainsFunc(timed, recorded) {
		return timed
	}
	return slices.DeleteFunc(slices.Clone(timed), func(kind string) bool { return recorded(kind) != (g.Inputs == InputsRecorded) })
}

func (g *Goal) empty() bool { return !g.PerShape() }

// PerShape reports whether the goal asks anything of single shapes, and not only of their weighted sum.
func (g *Goal) PerShape() bool { return g.Speedup != nil || g.LatencyReduction != nil || g.Timed() }

// Alone returns the conditions on single shapes.
func (g *Goal) Alone() *Goal {
	if g.Weighted == nil {
		return g
	}
	own := *g
	own.Weighted = nil
	return &own
}

// Timed reports whether the goal bounds an absolute time.
func (g *Goal) Timed() bool { return g.P50 != nil || g.P90 != nil }

// Ratio returns the smallest baseline/candidate that the goal allows, or 0 if it asks for none.
func (g *Goal) Ratio() float64 {
	ratio := 0.0
	if g.Speedup != nil {
		ratio = 1 + float64(g.Speedup.Value)
	}
	if g.LatencyReduction != nil {
		ratio = max(ratio, 1/(1-float64(g.LatencyReduction.Value)))
	}
	return ratio
}

// relative reports whether the goal compares the candidate with the baseline.
func (g *Goal) relative() bool { return g.Speedup != nil || g.LatencyReduction != nil }

// ForSecret returns what the goal asks on a secret shape: its comparisons with the baseline. A time
// in microseconds was chosen for the named shapes, not for a size drawn for the run.
func (g *Goal) ForSecret(shape string) *Goal {
	return &Goal{Shapes: Shapes{Names: []string{shape}}, Inputs: g.Inputs, Speedup: g.Speedup, LatencyReduction: g.LatencyReduction}
}

func (g Goal) String() string {
	var parts []string
	if g.Speedup != nil {
		parts = append(parts, "speedup "+g.Speedup.String())
	}
	if g.LatencyReduction != nil {
		parts = append(parts, "latency reduction "+g.LatencyReduction.String())
	}
	if g.P50 != nil {
		parts = append(parts, "p50 "+g.P50.String())
	}
	if g.P90 != nil {
		parts = append(parts, "p90 "+g.P90.String())
	}
	if g.BelowBest != nil {
		parts = append(parts, "below its best "+g.BelowBest.String())
	}
	alone := fmt.Sprintf("%s on %s", strings.Join(parts, " and "), g.Shapes)
	if g.Inputs == InputsRecorded {
		alone += ", recorded inputs"
	}
	if !g.Context.onlyCold() {
		alone += ", " + g.Context.String()
	}
	switch weighted := "weighted speedup "; {
	case g.Weighted == nil:
		return alone
	case len(parts) == 0:
		return weighted + g.Weighted.String()
	default:
		return weighted + g.Weighted.String() + " and " + alone
	}
}

func (g *Goal) check(n *strict.Node) {
	if g.empty() && (g.Weighted == nil || g.BelowBest != nil) {
		n.Errorf("names no metric (write e.g. speedup: \">= +10%%\")")
	}
	if g.Weighted != nil && g.empty() && !g.Shapes.All {
		n.Child("shapes").Errorf("selects shapes for conditions that are not here: weighted counts every shape that has a weight (delete it, or add e.g. speedup: \">= +10%%\")")
	}
	if g.Weighted != nil && g.Inputs == InputsRecorded {
		n.Child("inputs").Errorf("recorded does not go with weighted: the sum of a step counts random inputs (delete one of them)")
	}
	if g.Weighted != nil && g.empty() && !g.Context.onlyCold() {
		n.Child("context").Errorf("does not go with weighted: weights.warm in the manifest says which launches of a step are warm (delete it, or add e.g. speedup: \">= +10%%\")")
	}
	checkSpeedup(n.Child("speedup"), g.Speedup)
	checkSpeedup(n.Child("weighted"), g.Weighted)
	switch b := g.LatencyReduction; {
	case b == nil:
	case !b.Lower():
		n.Child("latency_reduction").Errorf("%q asks for a slow kernel (write \">=\")", b)
	case b.Value >= 1:
		n.Child("latency_reduction").Errorf("%q can never be met: a reduction is always below 100%% (write e.g. \">= 9%%\")", b)
	}
	switch b := g.BelowBest; {
	case b == nil:
	case b.Lower():
		n.Child("below_best").Errorf("%q asks for a slow kernel (write \"<=\")", b)
	case b.Value < 0, b.Value == 0 && b.Op == quantity.Below:
		n.Child("below_best").Errorf("%q can never be met: a kernel at its best is 0%% below it (write e.g. \"<= 8%%\")", b)
	case b.Value >= 1:
		n.Child("below_best").Errorf("%q can never fail: every kernel is less than 100%% below its best (write e.g. \"<= 8%%\")", b)
	}
	checkLatency(n.Child("p50"), g.P50)
	checkLatency(n.Child("p90"), g.P90)
}

func checkSpeedup(n *strict.Node, b *quantity.Bound[quantity.Percent]) {
	switch {
	case b == nil:
	case !b.Lower():
		n.Errorf("%q asks for a slow kernel (write \">=\")", b)
	case b.Value <= -1:
		n.Errorf("%q can never fail: a speedup is always above -100%% (write e.g. \">= -2%%\")", b)
	}
}

func checkLatency(n *strict.Node, b *quantity.Bound[quantity.Micros]) {
	switch {
	case b == nil:
	case b.Lower():
		n.Errorf("%q asks for a slow kernel (write \"<=\")", b)
	case b.Value == 0:
		n.Errorf("%q can never be met: every kernel takes time (write e.g. \"<= 5us\")", b)
	}
}
