package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// StepExplain is the step after the times are known that gathers evidence for people, among the steps of Evidence.Took.
const StepExplain Gate = "explain"

// ToExplain is the shapes whose difference in speed is to be explained, and is not yet: the target
// whose difference is the largest, and the shape that lost most. A shape without a proven difference
// has nothing to explain, unless it fails its goal.
func ToExplain(p *policy.Policy, e *Evidence) []string {
	rule := ruleFor(p, e)
	if lacksExplanation(rule, e) {
		return rule.Gates.OnlyExplain.Shapes.Names
	}
	if e.Explained != nil || e.Performance == nil || e.Fault != "" || !e.Can().Explains() {
		return nil
	}
	j := &judgement{rule: rule, evidence: e, resamples: newResamples(stats.DefaultResamples)}
	gate := j.rule.Gates.Performance
	if gate == nil || gate.Explain == nil {
		return nil
	}
	j.run()
	if named := gate.Explain.Shapes; named != nil {
		return named.Pick(differing(j.comparisons))
	}
	return MostDiffering(j.comparisons)
}

// lacksExplanation reports whether somebody asks why times differ, and the profiles of both sides are missing.
func lacksExplanation(rule *policy.Rule, e *Evidence) bool {
	built := e.Baseline != nil && e.Baseline.OK && e.Candidate != nil && e.Candidate.OK
	return rule.Gates.OnlyExplain != nil && e.Explained == nil && e.Fault == "" && e.Can().Explains() && built
}

// differs reports whether a shape that can be profiled has a proven difference, or misses its goal.
func (c *Comparison) differs() bool {
	if c.Secret || c.Context != "" || c.Same || c.Baseline == nil || c.Candidate == nil || !c.Speedup.Known() || c.Speedup.Lower == nil {
		return false
	}
	return c.slower() || *c.Speedup.Lower > 0 || c.Status == Failed
}

func (c *Comparison) slower() bool { return *c.Speedup.Upper < 0 }

// differing is the shapes whose difference can be explained, at most as many as evidence holds.
func differing(all []Comparison) []string {
	var shapes []string
	for i := range all {
		if all[i].differs() && len(shapes) < MaxExplainedShapes {
			shapes = append(shapes, all[i].Shape)
		}
	}
	return shapes
}

// MostDiffering is the target that differs most, and the shape that lost most; none without a proven difference.
func MostDiffering(all []Comparison) []string {
	var most, lost *Comparison
	size := func(c *Comparison) float64 { return math.Abs(math.Log1p(c.Speedup.Value)) }
	for i := range all {
		c := &all[i]
		if !c.differs() {
			continue
		}
		if c.slower() && (lost == nil || c.Speedup.Value < lost.Speedup.Value) {
			lost = c
		}
		if most == nil || c.Role == RoleTarget && most.Role != RoleTarget || c.Role == most.Role && size(c) > size(most) {
			most = c
		}
	}
	var shapes []string
	for _, c := range []*Comparison{most, lost} {
		if c != nil && !slices.Contains(shapes, c.Shape) {
			shapes = append(shapes, c.Shape)
		}
	}
	return shapes
}
