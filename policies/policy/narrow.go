package policy

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A policy is parsed once for many kernels, so nothing in this file changes it: every method returns
// a copy if it has something to change.

// Narrow returns a policy whose rules ask about these shapes and seeds instead of their own, for a
// measurement that somebody asks for in addition to the gate. An empty list changes nothing. Named
// shapes need not gain: the guard applies to them, and no secret shape is timed.
func (p *Policy) Narrow(shapes []string, seeds []int64) *Policy {
	if len(shapes) == 0 && len(seeds) == 0 {
		return p
	}
	return p.WithGates(func(g *Gates) {
		for _, d := range inOrder {
			d.narrow(g, shapes, seeds)
		}
	})
}

// OnlyExplain returns a policy that asks for a build and for profiles of both sides on these shapes, and judges nothing else. A
// rule keeps its own time limit for profiles.
func (p *Policy) OnlyExplain(shapes []string) *Policy {
	return p.WithGates(func(g *Gates) {
		own := &Explain{}
		if g.Performance != nil && g.Performance.Explain != nil {
			own.Timeout = g.Performance.Explain.Timeout
		}
		own.Shapes = &Shapes{Names: shapes}
		own.fill(nil)
		for _, d := range inOrder {
			d.drop(g) // the build stays
		}
		g.OnlyExplain = own
	})
}

// AtMost returns a policy with bounded rounds of every rule, and whether that cut any. The interim analyses
// within the bound keep their places, so that decisions follow the policy's rule. Fewer than
// [MinRounds] decide nothing, so AtMost allows at least that many.
func (p *Policy) AtMost(rounds int) (bounded *Policy, cut bool) {
	rounds = max(rounds, MinRounds)
	bounded = p.WithGates(func(g *Gates) {
		if g.Performance == nil || rounds >= int(g.Performance.Rounds.Max) {
			return
		}
		own := *g.Performance
		own.Interims = append(slices.DeleteFunc(slices.Clone(own.Interims), func(n int) bool { return n >= rounds }), rounds)
		g.Performance, cut = &own, true
	})
	return bounded, cut
}

// AtLeast returns a policy whose rules measure this many rounds, if they have fewer, and whether
// that raised any. Such a rule gets proportionally more time. The interim analyses keep their places, and the
// last round is one more.
func (p *Policy) AtLeast(rounds int) (longer *Policy, raised bool) {
	longer = p.WithGates(func(g *Gates) {
		if g.Performance == nil || rounds <= int(g.Performance.Rounds.Max) {
			return
		}
		own := *g.Performance
		more := quantity.Duration(math.Ceil(float64(rounds) / max(1, float64(own.Rounds.Max))))
		own.Budget, own.Timeout = own.Budget*more, own.Timeout*more
		own.Rounds.Max = quantity.Count(rounds)
		own.Interims = append(slices.Clone(own.Interims), rounds)
		g.Performance, raised = &own, true
	})
	return longer, raised
}

// Static returns a policy without the gates that have to run the kernel.
func (p *Policy) Static() *Policy {
	return p.WithGates(func(g *Gates) {
		for _, d := range inOrder {
			if d.runs {
				d.drop(g)
			}
		}
	})
}

// Probe returns a policy for a first look: nothing secret is drawn, as few rounds as may decide are
// measured, and nothing is profiled. What it accepts is not proven.
func (p *Policy) Probe() *Policy {
	short, _ := p.AtMost(MinRounds)
	return short.WithGates(func(g *Gates) {
		if g.Correctness != nil {
			own := *g.Correctness
			own.SecretCases, g.Correctness = 0, &own
		}
		if g.Sanitize != nil {
			own := *g.Sanitize
			own.SecretCases, g.Sanitize = 0, &own
		}
		if g.Performance != nil {
			own := *g.Performance
			own.SecretShape, g.Performance = new(false), &own
		}
		g.Profile = nil
	})
}

// WithGates returns a copy whose rules have changed gates. The function may replace a gate, and must
// not write to one: the copy shares them with the original.
func (p *Policy) WithGates(change func(*Gates)) *Policy {
	other := *p
	other.Rules = slices.Clone(p.Rules)
	for i := range other.Rules {
		change(&other.Rules[i].Gates)
	}
	return &other
}
