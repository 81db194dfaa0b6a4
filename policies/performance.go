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

// A PerformanceGate says what the candidate must gain, what it must not lose,
// and how much measuring may be spent on the proof.
type PerformanceGate struct {
	Enforcement
	Baseline   Baseline          `yaml:"baseline" eg:"merge-base" doc:"merge-base, ref:NAME, tag:NAME or variant:NAME."`
	Target     *Goal             `yaml:"target" doc:"What must be gained; none for a change that need not be faster."`
	Guard      *Goal             `yaml:"guard" doc:"What must not be lost, on the shapes that are no target."`
	Confidence quantity.Percent  `yaml:"confidence" eg:"95%" doc:"Of the intervals that decide, over all looks together."`
	Rounds     Rounds            `yaml:"rounds" doc:"Fresh processes: how many at least and at most."`
	Pairs      quantity.Count    `yaml:"pairs" eg:"50" doc:"Pairs of baseline and candidate per round and shape."`
	Looks      []int             `yaml:"looks" doc:"After how many rounds the verdict may fall; the last is rounds.max."`
	Control    quantity.Percent  `yaml:"control" eg:"2%" doc:"How far the A/A control may be from 1."`
	SoloShift  quantity.Percent  `yaml:"solo_shift" eg:"2%" doc:"How much slower the baseline may be beside the candidate than alone."`
	Budget     quantity.Duration `yaml:"budget" eg:"5m" doc:"Measuring time for one run; what is undecided then is inconclusive."`
	Roofline   *bool             `yaml:"roofline" doc:"Defer a time below the physical floor as suspicious. Default true."`
}

// Rounds is how many fresh processes are measured.
type Rounds struct {
	Min quantity.Count `yaml:"min" eg:"6"`
	Max quantity.Count `yaml:"max" eg:"20"`
}

// A Goal is conditions on shapes. Speedup is baseline/candidate − 1, latency
// reduction is 1 − candidate/baseline; p50 and p90 are the candidate's own
// latency.
type Goal struct {
	Shapes           Shapes                            `yaml:"shapes"`
	Speedup          *quantity.Bound[quantity.Percent] `yaml:"speedup" eg:">= +10%"`
	LatencyReduction *quantity.Bound[quantity.Percent] `yaml:"latency_reduction" eg:">= 9%"`
	P50              *quantity.Bound[quantity.Micros]  `yaml:"p50" eg:"<= 5us"`
	P90              *quantity.Bound[quantity.Micros]  `yaml:"p90" eg:"<= 6us"`
}

func (g *Goal) empty() bool {
	return g.Speedup == nil && g.LatencyReduction == nil && g.P50 == nil && g.P90 == nil
}

func (g *Goal) String() string {
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
	return fmt.Sprintf("%s on %s", strings.Join(parts, " and "), g.Shapes)
}

// A Baseline is what the candidate is measured against.
type Baseline struct {
	Kind string // merge-base, ref, tag or variant
	Name string
}

var baselineText = regexp.MustCompile(`^(?:(merge-base)|(ref|tag|variant):([A-Za-z0-9][A-Za-z0-9._/-]*))$`)

func (b *Baseline) UnmarshalStrict(n *strict.Node) {
	text, _ := n.Text()
	m := baselineText.FindStringSubmatch(text)
	if m == nil {
		n.Errorf("%q is not a baseline (write merge-base, ref:main, tag:v1.2 or variant:stage1)", text)
		return
	}
	*b = Baseline{Kind: m[1] + m[2], Name: m[3]}
}

func (b *Baseline) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": baselineText.String()}
}

func (b Baseline) String() string {
	if b.Name == "" {
		return b.Kind
	}
	return b.Kind + ":" + b.Name
}

// ValidateStrict fills what was left out; the defaults are the ones whose error
// rates the simulation in package gates shows.
func (g *PerformanceGate) ValidateStrict(n *strict.Node) {
	def := func(v *quantity.Percent, to quantity.Percent) {
		if *v == 0 {
			*v = to
		}
	}
	def(&g.Confidence, 0.95)
	def(&g.Control, 0.02)
	def(&g.SoloShift, 0.02)
	if g.Baseline.Kind == "" {
		g.Baseline.Kind = "merge-base"
	}
	if g.Rounds.Min == 0 {
		g.Rounds.Min = 6
	}
	if g.Rounds.Max == 0 {
		g.Rounds.Max = max(20, g.Rounds.Min)
	}
	if g.Pairs == 0 {
		g.Pairs = 50
	}
	if g.Budget == 0 {
		g.Budget = quantity.Duration(5 * time.Minute)
	}
	if len(g.Looks) == 0 || (n.Has("rounds") && !n.Has("looks")) {
		g.Looks = defaultLooks(int(g.Rounds.Min), int(g.Rounds.Max))
	}
	for _, goal := range []*Goal{g.Target, g.Guard} {
		if goal != nil && !goal.Shapes.All && len(goal.Shapes.Names) == 0 {
			goal.Shapes.All = true
		}
	}
}

// defaultLooks are the first and the last round that may decide, and the
// middle between them.
func defaultLooks(first, last int) []int {
	return slices.Compact([]int{first, (first + last) / 2, last})
}

func (g *PerformanceGate) check(n *strict.Node) {
	if g.Target == nil && g.Guard == nil {
		n.Errorf("asks for nothing (write target, guard or both)")
	}
	for _, goal := range []struct {
		name string
		*Goal
	}{{"target", g.Target}, {"guard", g.Guard}} {
		if goal.Goal != nil && goal.empty() {
			n.Child(goal.name).Errorf("names no metric (write e.g. speedup: \">= +10%%\")")
		}
		if goal.Goal != nil {
			goal.check(n.Child(goal.name))
		}
	}
	if g.Confidence < 0.8 || g.Confidence > 0.999 {
		n.Child("confidence").Errorf("%s is outside 80%% to 99.9%%", g.Confidence)
	}
	if g.Rounds.Min < 3 {
		n.Child("rounds", "min").Errorf("%s rounds cannot show the noise between processes (write at least 3)", g.Rounds.Min)
	}
	if g.Rounds.Max < g.Rounds.Min {
		n.Child("rounds", "max").Errorf("%s is less than rounds.min %s", g.Rounds.Max, g.Rounds.Min)
	}
	if g.Rounds.Max > 1000 {
		n.Child("rounds", "max").Errorf("%s is more than 1000", g.Rounds.Max)
	}
	if g.Pairs < 4 || g.Pairs > 100_000 {
		n.Child("pairs").Errorf("%s is outside 4 to 100000", g.Pairs)
	}
	if !slices.IsSorted(g.Looks) || len(slices.Compact(slices.Clone(g.Looks))) != len(g.Looks) {
		n.Child("looks").Errorf("do not ascend (write e.g. [6, 13, 20])")
	} else if g.Looks[0] < int(g.Rounds.Min) || g.Looks[len(g.Looks)-1] != int(g.Rounds.Max) {
		n.Child("looks").Errorf("run from %d to %d, but rounds from %s to %s (the first look is not before rounds.min, the last is rounds.max)",
			g.Looks[0], g.Looks[len(g.Looks)-1], g.Rounds.Min, g.Rounds.Max)
	}
}

func (g *Goal) check(n *strict.Node) {
	if g.Speedup != nil && !g.Speedup.Lower() {
		n.Child("speedup").Errorf("%q asks for a slow kernel (write \">=\")", g.Speedup)
	}
	if g.Speedup != nil && g.Speedup.Value <= -1 {
		n.Child("speedup").Errorf("%q can never fail: a speedup is always above -100%%", g.Speedup)
	}
	if g.LatencyReduction != nil && !g.LatencyReduction.Lower() {
		n.Child("latency_reduction").Errorf("%q asks for a slow kernel (write \">=\")", g.LatencyReduction)
	}
	if g.LatencyReduction != nil && g.LatencyReduction.Value >= 1 {
		n.Child("latency_reduction").Errorf("%q can never be met: a reduction is always below 100%%", g.LatencyReduction)
	}
	for name, b := range map[string]*quantity.Bound[quantity.Micros]{"p50": g.P50, "p90": g.P90} {
		if b != nil && b.Lower() {
			n.Child(name).Errorf("%q asks for a slow kernel (write \"<=\")", b)
		}
	}
}
