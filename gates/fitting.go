package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// fittingRules advises a label or a title under which a rule for refactorings would judge the change. A change that
// leaves every bit of the output as it was, and is deferred only for its speed, may be a refactoring.
func (j *judgement) fittingRules(p *policy.Policy, reason Reason) []facts.Advice {
	if reason != ReasonTooSlow || !j.identical() {
		return nil
	}
	change := changeOf(j.evidence)
	var found []facts.Advice
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule == j.rule {
			break // those behind it are never reached
		}
		if !rule.Enforce.Blocks() {
			continue // it decides nothing
		}
		if step, ok := wayTo(p, rule, change); ok && j.mayMeet(rule.Gates.Performance) {
			found = append(found, step)
		}
	}
	return found
}

// identical reports whether every output equals the baseline's bit for bit.
func (j *judgement) identical() bool {
	differs := func(r CaseRow) bool { return r.BitParity == nil || !*r.BitParity }
	return j.evidence.SameCode || len(j.cases) > 0 && !slices.ContainsFunc(j.cases, differs)
}

// mayMeet reports whether no measured figure contradicts the goals of a gate.
func (j *judgement) mayMeet(gate *policy.PerformanceGate) bool {
	if gate == nil {
		return true
	}
	if asksGain(gate.Target) || asksGain(gate.Guard) {
		return false
	}
	for _, c := range j.comparisons {
		best := c.Speedup.Value
		if c.Speedup.Upper != nil {
			best = *c.Speedup.Upper
		}
		if g := gate.Guard; g != nil && g.Speedup != nil && !g.Speedup.Holds(best) {
			return false
		}
	}
	return true
}

// asksGain reports whether a goal asks for more than no change.
func asksGain(g *policy.Goal) bool {
	return g != nil && (g.Weighted != nil && !g.Weighted.Holds(0) || g.Speedup != nil && !g.Speedup.Holds(0) || g.LatencyReduction != nil && !g.LatencyReduction.Holds(0))
}

// wayTo is what an author can do for a rule to apply. It is not ok where there is nothing.
func wayTo(p *policy.Policy, rule *policy.Rule, change policy.Change) (step facts.AsRefactoring, ok bool) {
	step.Rule = rule.Name
	if gate := rule.Gates.Performance; gate != nil && len(gate.Goals()) > 0 {
		step.Asked = cmp.Or(gate.Guard, gate.Target).String()
	}
	for _, label := range rule.When.Labels {
		with := change
		with.Labels = append(slices.Clone(change.Labels), label)
		if p.RuleFor(with) == rule {
			step.Label = label
			return step, true
		}
	}
	if title := rule.When.Title; title.Regexp != nil {
		rest := rule.When
		rest.Title = policy.Regexp{}
		step.Title = title.String()
		return step, rest.Matches(change)
	}
	return step, false
}
