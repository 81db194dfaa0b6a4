package gates

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// fittingRules says by which label or title a change would be judged as what it is: one
// that changes no bit of the output and was deferred for its speed alone may be meant
// as a refactoring, of which nobody asks a gain.
func (j *judgement) fittingRules(p *policy.Policy, v *Verdict) []string {
	if v.Reason != ReasonTooSlow || !j.identical() {
		return nil
	}
	change := j.evidence.Change
	change.Kernel = j.evidence.Kernel
	var found []string
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule == j.rule {
			break // those behind it are never reached
		}
		if how := wayTo(p, rule, change); how != "" && j.holds(rule.Gates.Performance) {
			found = append(found, fmt.Sprintf("or, should it be a refactoring, %s: the outputs are the baseline's bit for bit, and the rule `%s` asks %s", how, rule.Name, askedOfSpeed(rule.Gates.Performance)))
		}
	}
	return found
}

// identical tells whether not a bit of any output differs from the baseline's.
func (j *judgement) identical() bool {
	differs := func(r CaseRow) bool { return r.BitParity == nil || !*r.BitParity }
	return j.evidence.SameCode || len(j.cases) > 0 && !slices.ContainsFunc(j.cases, differs)
}

// holds tells whether nothing that was measured speaks against what a gate asks.
func (j *judgement) holds(gate *policy.PerformanceGate) bool {
	if gate == nil {
		return true
	}
	if gains(gate.Target) || gains(gate.Guard) {
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

// gains tells whether a goal asks for more than what is there already.
func gains(g *policy.Goal) bool {
	return g != nil && (g.Speedup != nil && !g.Speedup.Holds(0) || g.LatencyReduction != nil && !g.LatencyReduction.Holds(0))
}

// wayTo is what an author can do for a rule to apply; "" where that is nothing.
func wayTo(p *policy.Policy, rule *policy.Rule, change policy.Change) string {
	for _, label := range rule.When.Labels {
		with := change
		with.Labels = append(slices.Clone(change.Labels), label)
		if p.RuleFor(with) == rule {
			return fmt.Sprintf("give it the label `%s`", label)
		}
	}
	if title := rule.When.Title; title.Regexp != nil {
		rest := rule.When
		rest.Title = policy.Regexp{}
		if rest.Matches(change) {
			return fmt.Sprintf("give it a title that matches `%s`", title)
		}
	}
	return ""
}

func askedOfSpeed(gate *policy.PerformanceGate) string {
	if gate == nil || len(gate.Goals()) == 0 {
		return "nothing of its speed"
	}
	return "only " + cmp.Or(gate.Guard, gate.Target).String()
}
