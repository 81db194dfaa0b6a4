package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
)

// checkShapes refuses a policy that asks for shapes that the kernel does not have, before anything
// is built.
func checkShapes(job runners.Job) error {
	rule := job.Rule()
	known := job.Manifest.ShapeNames()
	var wrong []string
	for _, asked := range rule.Gates.Inputs() {
		for _, name := range asked.Shapes.Unknown(known) {
			wrong = append(wrong, fmt.Sprintf("%s: rule %s: gates.%s: %s has no shape %q (it has %s)", job.PolicyFile, rule.Name, asked.Field, job.Manifest.Name, name, strings.Join(known, ", ")))
		}
	}
	if len(wrong) > 0 {
		return usage.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// checkAbilities refuses a policy that asks for something that the kernel cannot have. A new kernel has no speedup, so it needs
// no weights.
func checkAbilities(job runners.Job, isNew bool) error {
	rule := job.Rule()
	var wrong []string
	for _, u := range Unmet(rule, job.Manifest) {
		if !isNew || u.Field != weightedField(rule.Gates.Performance) {
			wrong = append(wrong, fmt.Sprintf("%s: rule %s: gates.%s: %s", job.PolicyFile, rule.Name, u.Field, u.Why))
		}
	}
	if len(wrong) > 0 {
		return usage.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// An Unmeetable key of a policy asks for something that a kernel cannot have.
type Unmeetable struct{ Field, Why string }

// Unmet returns the keys of a rule that ask for something that a kernel with this manifest cannot have.
func Unmet(rule *policy.Rule, m *manifest.Manifest) []Unmeetable {
	gate := rule.Gates.Performance
	if gate == nil {
		return nil
	}
	var all []Unmeetable
	if field := weightedField(gate); field != "" && m.Weights == nil {
		all = append(all, Unmeetable{field, fmt.Sprintf("the manifest of %s has no weights on the base branch (add them there: kernelgate weights TRACE --kernel %s reads them from a trace of a profiler)", m.Name, m.Name)})
	}
	if field := warmField(gate); field != "" && !runners.ModeOf(m).Warm {
		all = append(all, Unmeetable{field, fmt.Sprintf("launches of %s (mode %s) cannot be timed with a warm cache: only mode cuda empties and fills it (delete warm, or write a rule for this kernel)", m.Name, m.Mode)})
	}
	return all
}

// weightedField is the key of the goal that asks for a weighted speedup, or "".
func weightedField(gate *policy.PerformanceGate) string {
	return fieldOf(gate, "weighted", func(g *policy.Goal) bool { return g.Weighted != nil })
}

// warmField is the key of the goal that asks for a warm cache, or "".
func warmField(gate *policy.PerformanceGate) string {
	return fieldOf(gate, "context", func(g *policy.Goal) bool { return g.Context.Has(policy.Warm) })
}

// fieldOf is a key of the first goal that asks for something, or "".
func fieldOf(gate *policy.PerformanceGate, key string, asks func(*policy.Goal) bool) string {
	switch {
	case gate.Target != nil && asks(gate.Target):
		return "performance.target." + key
	case gate.Guard != nil && asks(gate.Guard):
		return "performance.guard." + key
	}
	return ""
}

// checkLimits refuses a policy that names shapes that one of the sides cannot run. No evidence could
// satisfy it, because the gates ask for every shape that the policy names. A comparison with a
// different revision is for information, and leaves such shapes out.
func (p *Plan) checkLimits(job runners.Job) error {
	if p.opt.Versus != "" && p.opt.Versus != Self {
		return nil
	}
	rule := job.Rule()
	var wrong []string
	for _, asked := range rule.Gates.Inputs() {
		for _, name := range asked.Shapes.Names {
			if why := OutsideLimits(job, name); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s: rule %s: gates.%s: %s", job.PolicyFile, rule.Name, asked.Field, why))
			}
		}
	}
	if gate := rule.Gates.Performance; gate != nil && gate.Weighted() != nil && job.Manifest.Weights != nil {
		for _, name := range slices.Sorted(maps.Keys(job.Manifest.Weights.Launches)) {
			if why := OutsideLimits(job, name); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s: rule %s: gates.%s: %s", job.PolicyFile, rule.Name, weightedField(gate), why))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	if widened(job) {
		wrong = append(wrong, "The change repairs this, and the base's manifest holds until it is merged: nothing can judge the change before that (merge it by /override, or past the gate)")
	}
	return usage.Errorf("%s", strings.Join(wrong, "\n"))
}

// OutsideLimits explains which side of a job cannot run a shape. It returns "" if both can.
func OutsideLimits(job runners.Job, name string) string {
	shape, _ := job.Manifest.Shape(name)
	for i, side := range []*runners.Side{&job.Candidate, job.Baseline} {
		if side == nil || job.Of(*side).Supports(side.Variant, shape.Dims) {
			continue
		}
		fix := "widen its limits"
		if both := job.ShapeNames(); len(both) > 0 {
			fix = fmt.Sprintf("both sides take %s: name those, or widen its limits", strings.Join(both, ", "))
		}
		return fmt.Sprintf("the shape %q (%s) is outside the limits of the variant %s of %s, the %s (%s)", name, shape.Dims, side.Variant, job.Manifest.Name, [...]string{"candidate", "baseline"}[i], fix)
	}
	return ""
}

// widened reports whether the head's default variant takes all shapes that the manifest has, and the
// base's does not.
func widened(job runners.Job) bool {
	takesAll := func(s runners.Side) bool {
		return !slices.ContainsFunc(job.Manifest.Shapes, func(shape manifest.Shape) bool { return !job.Of(s).Supports(s.Variant, shape.Dims) })
	}
	return job.Candidate.Manifest != nil && job.Baseline != nil && takesAll(job.Candidate) && !takesAll(*job.Baseline)
}
