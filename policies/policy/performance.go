package policy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A PerformanceGate says what the candidate must gain, what it must not lose, and how much
// measuring may be spent on the proof.
type PerformanceGate struct {
	Enforcement
	Deadline
	Baseline    Baseline          `yaml:"baseline" eg:"tag:v1.2" default:"base" doc:"What to measure the candidate against: base, the tip of the base branch; the tip of a different branch; a tag; a different variant; or best, the fastest commit ever merged."`
	Target      *Goal             `yaml:"target" eg:"{shapes: [mission], speedup: \">= +10%\"}" doc:"Required gain; none for a change that need not be faster."`
	Guard       *Goal             `yaml:"guard" eg:"{speedup: \">= -2%\"}" doc:"Maximum loss, on the shapes outside of the target."`
	Confidence  quantity.Percent  `yaml:"confidence" eg:"99%" default:"95%" bounds:"80% to 99.9%" doc:"Confidence of the intervals that decide, for all interim analyses together."`
	Rounds      Rounds            `yaml:"rounds" eg:"{min: 8, max: 12}" doc:"Minimum and maximum number of rounds. Each round runs in fresh processes."`
	Pairs       quantity.Count    `yaml:"pairs" eg:"20" default:"50" bounds:"4 to 100000" doc:"Number of pairs of baseline and candidate per round and shape."`
	Interims    []int             `yaml:"interims" eg:"[6, 13, 20]" default:"(rounds.min, the middle, rounds.max)" bounds:"(ascending)" doc:"Numbers of rounds after which the gate may decide. The last is rounds.max."`
	Control     quantity.Percent  `yaml:"control" eg:"1%" default:"2%" bounds:"0.1% to 50%" doc:"Maximum distance of the A/A control from 1."`
	SoloShift   quantity.Percent  `yaml:"solo_shift" eg:"3%" default:"2%" bounds:"0.1% to 1000%" doc:"How much slower the baseline may be when it alternates with the candidate than when it runs alone."`
	Tails       *Tails            `yaml:"tails" eg:"{mean: 5%, p90: none}" default:"{mean: 3%, p90: 3%}" doc:"How far the speedups of the mean and the p90 may lie below the goal for the median; none for no bound."`
	Budget      quantity.Duration `yaml:"budget" eg:"10m" default:"5m" doc:"Time limit for measuring one run. A shape that is undecided by then is inconclusive."`
	SecretShape *bool             `yaml:"secret_shape" eg:"false" default:"(true)" doc:"Also apply the guard's speedup and latency reduction to one random problem size from the manifest's secret ranges. Without a guard there is no secret shape."`
	Roofline    *bool             `yaml:"roofline" eg:"false" default:"(true)" doc:"Defer a time below the physical minimum (the roofline) as suspicious."`
	Explain     *Explain          `yaml:"explain" eg:"none" default:"{timeout: 30s}" doc:"Profile both sides where their times differ, and say why; none to leave it out. It decides nothing."`
}

// Tails keeps a fast median from hiding slow launches. The speedups of the mean and of the p90 may
// be below the median's goal only by a given share. The gate defers if more is proven; an estimate
// below leaves the result open.
type Tails struct {
	Mean *quantity.Percent `yaml:"mean" eg:"5%" default:"3%" bounds:"0% to 50%" doc:"How far the mean's speedup may lie below the goal; none for no bound."`
	P90  *quantity.Percent `yaml:"p90" eg:"none" default:"3%" bounds:"0% to 50%" doc:"How far the p90's speedup may lie below the goal; none for no bound."`
}

// Rounds is the number of rounds, each of which runs in fresh processes.
type Rounds struct {
	Min quantity.Count `yaml:"min" eg:"8" default:"6" bounds:"(6 to max)" doc:"Minimum number of rounds before a decision."`
	Max quantity.Count `yaml:"max" eg:"40" default:"20" bounds:"(min to 1000)" doc:"Maximum number of rounds. A shape that is undecided by then is inconclusive."`
}

// A Baseline is what the candidate is measured against.
type Baseline struct {
	Kind string // base, best, ref, tag or variant
	Name string
}

const baseBranch = "base"

// Kinds of baselines that other packages use.
const (
	// BaselineBest is the kernel's high-water mark: the merged commit with the best cumulative
	// speed.
	BaselineBest    = "best"
	BaselineVariant = "variant"
)

var baselineText = regexp.MustCompile(`^(?:(base|best)|(ref|tag|variant):([A-Za-z0-9][A-Za-z0-9._/-]*))$`)

func (b *Baseline) UnmarshalStrict(n *strict.Node) {
	text, _ := n.Text()
	m := baselineText.FindStringSubmatch(text)
	// To git, two dots mean everything between two commits.
	if m == nil || strings.Contains(text, "..") {
		n.Errorf("%q is not a baseline (write base, best, ref:main, tag:v1.2 or variant:stage1)", text)
		return
	}
	*b = Baseline{Kind: m[1] + m[2], Name: m[3]}
}

func (b *Baseline) JSONSchema() map[string]any {
	return map[string]any{"title": "base, best, ref:NAME, tag:NAME or variant:NAME", "type": "string", "pattern": baselineText.String()}
}

func (b Baseline) String() string {
	if b.Name == "" {
		return b.Kind
	}
	return b.Kind + ":" + b.Name
}

// TimesSecretShape reports whether one problem size drawn for the run is timed under the guard. A
// guard that only bounds times in microseconds says nothing about a size that nobody knows.
func (g *PerformanceGate) TimesSecretShape() bool {
	return g.Guard != nil && g.Guard.relative() && (g.SecretShape == nil || *g.SecretShape)
}

// Goals returns the goals that are set.
func (g *PerformanceGate) Goals() []*Goal {
	return slices.DeleteFunc([]*Goal{g.Target, g.Guard}, func(goal *Goal) bool { return goal == nil })
}

// Weighted returns the goal that asks for a weighted speedup, nil if none does.
func (g *PerformanceGate) Weighted() *Goal {
	for _, goal := range g.Goals() {
		if goal.Weighted != nil {
			return goal
		}
	}
	return nil
}

const (
	// MinRounds is the smallest number of rounds that may decide. Intervals over five rounds or
	// fewer rest on a spread that is itself a matter of luck.
	MinRounds = 6
	// MaxRounds is the largest number of rounds that a run may measure.
	MaxRounds = 1000

	defaultRounds    = MinRounds
	defaultMaxRounds = 20
)

// ValidateStrict drops the interims of a lower layer if this layer changes the rounds for which they
// were made.
func (g *PerformanceGate) ValidateStrict(n *strict.Node) {
	if n.Has("rounds") && !n.Has("interims") {
		g.Interims = nil
	}
}

// fill sets fields that were left out. The simulation in package gates shows the error rates of
// these defaults.
func (g *PerformanceGate) fill(n *strict.Node) {
	for _, share := range []struct {
		field string
		v     *quantity.Percent
		to    quantity.Percent
	}{{"confidence", &g.Confidence, 0.95}, {"control", &g.Control, 0.02}, {"solo_shift", &g.SoloShift, 0.02}} {
		if !n.Has(share.field) {
			*share.v = share.to
		}
	}
	g.Baseline.Kind = cmp.Or(g.Baseline.Kind, baseBranch)
	if !n.Has("tails") {
		g.Tails = &Tails{}
	}
	if g.Tails != nil {
		g.Tails.fill(n.Child("tails"))
	}
	if !n.Has("explain") {
		g.Explain = &Explain{}
	}
	if g.Explain != nil {
		g.Explain.fill(n.Child("explain"))
	}
	g.Rounds.fill(n.Child("rounds"))
	if !n.Has("pairs") {
		g.Pairs = 50
	}
	g.Budget = cmp.Or(g.Budget, quantity.Duration(5*time.Minute))
	if g.Interims == nil {
		g.Interims = defaultInterims(int(g.Rounds.Min), int(g.Rounds.Max))
	}
	for _, goal := range g.Goals() {
		goal.Shapes.fill()
		goal.Inputs = cmp.Or(goal.Inputs, InputsRandom)
		goal.Context.fill()
	}
}

// given returns nil if nothing is asked of the tails.
func (t *Tails) given() *Tails {
	if t == nil || *t == (Tails{}) {
		return nil
	}
	return t
}

func (t *Tails) fill(n *strict.Node) {
	for _, share := range []struct {
		field string
		v     **quantity.Percent
	}{{"mean", &t.Mean}, {"p90", &t.P90}} {
		if !n.Has(share.field) {
			*share.v = new(quantity.Percent(0.03))
		}
	}
}

// fill chooses each missing default so that it fits the end that was given.
func (r *Rounds) fill(n *strict.Node) {
	hasMin, hasMax := n.Has("min"), n.Has("max")
	if !hasMin {
		r.Min = defaultRounds
		if hasMax {
			r.Min = min(r.Min, r.Max)
		}
	}
	if !hasMax {
		r.Max = max(defaultMaxRounds, r.Min)
	}
}

// defaultInterims returns the first and the last round that may decide, and the middle between them.
func defaultInterims(first, last int) []int {
	return slices.Compact([]int{first, (first + last) / 2, last})
}

func (g *PerformanceGate) check(n *strict.Node, beside rest) {
	for _, goal := range []struct {
		field string
		*Goal
	}{{"target", g.Target}, {"guard", g.Guard}} {
		output := beside.gates.Correctness
		if goal.Goal != nil && goal.Inputs == InputsRecorded && (output == nil || !slices.ContainsFunc(output.Distributions, distribution.Kind.FromRecording)) {
			n.Child(goal.field, "inputs").Errorf("is recorded, and correctness.distributions names no recording to time on (add recorded there)")
		}
	}
	if output := beside.gates.Correctness; output == nil || !output.Decides() {
		// Report it at the rule that removes the gate, where the author can fix it.
		at := n
		if beside.node.Has("correctness") {
			at = beside.node.Child("correctness")
		}
		at.Errorf("a kernel's speed is judged only after its output (add a required correctness gate, or write performance: none)")
	}
	if g.Target == nil && g.Guard == nil {
		n.Errorf("asks for nothing (write target, guard or both)")
	}
	if g.Target != nil {
		g.Target.check(n.Child("target"))
	}
	if g.Guard != nil {
		g.Guard.check(n.Child("guard"))
	}
	if g.Target != nil && g.Guard != nil && g.Target.Weighted != nil && g.Guard.Weighted != nil {
		n.Child("guard", "weighted").Errorf("%q bounds the same figure as the target (delete one)", g.Guard.Weighted)
	}
	for _, share := range []struct {
		field       string
		v, from, to quantity.Percent
		example     string
	}{
		{"confidence", g.Confidence, 0.8, 0.999, "95%"},
		{"control", g.Control, 0.001, 0.5, "2%"},
		{"solo_shift", g.SoloShift, 0.001, 10, "2%"},
	} {
		if share.v < share.from || share.v > share.to {
			n.Child(share.field).Errorf("%s is outside %s to %s (write e.g. %s)", share.v, share.from, share.to, share.example)
		}
	}
	if g.Tails != nil {
		g.Tails.check(n.Child("tails"))
	}
	if g.Pairs < 4 || g.Pairs > 100_000 {
		n.Child("pairs").Errorf("%s is outside 4 to 100000 (write e.g. 50)", g.Pairs)
	}
	if g.Rounds.check(n.Child("rounds")) {
		g.checkInterims(n.Child("interims"))
	}
}

func (t *Tails) check(n *strict.Node) {
	for field, v := range map[string]*quantity.Percent{"mean": t.Mean, "p90": t.P90} {
		if v != nil && (*v < 0 || *v > 0.5) {
			n.Child(field).Errorf("%s is outside 0%% to 50%% (write e.g. 3%%, or none)", *v)
		}
	}
}

func (r Rounds) check(n *strict.Node) bool {
	switch {
	case r.Min < MinRounds:
		n.Child("min").Errorf("%s rounds cannot show the noise between processes (write at least %d)", r.Min, MinRounds)
	case r.Max < r.Min:
		n.Child("max").Errorf("%s is less than rounds.min %s (write at least %s)", r.Max, r.Min, r.Min)
	case r.Max > MaxRounds:
		n.Child("max").Errorf("%s rounds are too many (write at most %d)", r.Max, MaxRounds)
	default:
		return true
	}
	return false
}

func (g *PerformanceGate) checkInterims(n *strict.Node) {
	rising := slices.IsSorted(g.Interims) && len(slices.Compact(slices.Clone(g.Interims))) == len(g.Interims)
	switch interims := len(g.Interims); {
	case interims == 0:
		n.Errorf("is empty (write e.g. [6, 13, 20], or delete it)")
	case !rising:
		n.Errorf("do not ascend (write e.g. [6, 13, 20])")
	case g.Interims[0] < int(g.Rounds.Min) || g.Interims[interims-1] != int(g.Rounds.Max):
		n.Errorf("run from %d to %d, but rounds from %s to %s (the first is not before rounds.min, the last is rounds.max)",
			g.Interims[0], g.Interims[interims-1], g.Rounds.Min, g.Rounds.Max)
	}
}

func (g PerformanceGate) String() string {
	var parts, interims []string
	if g.Target != nil {
		parts = append(parts, g.Target.String())
	}
	if g.Guard != nil {
		lost := "guard: " + g.Guard.String()
		if g.TimesSecretShape() {
			lost += " and on one random size"
		}
		parts = append(parts, lost)
	}
	if tails := g.Tails.given(); tails != nil {
		parts = append(parts, tails.String())
	}
	for _, interim := range g.Interims {
		interims = append(interims, fmt.Sprint(interim))
	}
	return fmt.Sprintf("against %s: %s; proven at %s in %s to %s rounds of %s pairs, interims after %s, within %v",
		g.Baseline, strings.Join(parts, "; "), g.Confidence, g.Rounds.Min, g.Rounds.Max, g.Pairs, strings.Join(interims, ", "), g.Budget)
}

func (t Tails) String() string {
	var parts []string
	if t.Mean != nil && t.P90 != nil && *t.Mean == *t.P90 {
		return fmt.Sprintf("mean and p90 at most %s short of that", *t.Mean)
	}
	if t.Mean != nil {
		parts = append(parts, fmt.Sprintf("mean at most %s", *t.Mean))
	}
	if t.P90 != nil {
		parts = append(parts, fmt.Sprintf("p90 at most %s", *t.P90))
	}
	return strings.Join(parts, " and ") + " short of that"
}

func (g *PerformanceGate) narrow(shapes []string, _ []int64) *PerformanceGate {
	if len(shapes) == 0 {
		return g
	}
	own := *g
	if goal := cmp.Or(own.Guard, own.Target); goal != nil {
		named := *goal.Alone()
		if named.empty() { // what is asked of the sum is asked of each of them
			named.Speedup = goal.Weighted
		}
		named.Shapes = Shapes{Names: shapes}
		own.Target, own.Guard = nil, &named
		own.SecretShape = new(false)
	}
	return &own
}

func (g *PerformanceGate) inputs() (all []Inputs) {
	if g.Target != nil && g.Target.PerShape() {
		all = append(all, Inputs{"performance.target.shapes", g.Target.Shapes, false})
	}
	if g.Guard != nil && g.Guard.PerShape() {
		all = append(all, Inputs{"performance.guard.shapes", g.Guard.Shapes, g.TimesSecretShape()})
	}
	return all
}
