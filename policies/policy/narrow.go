package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Narrow makes every rule ask about these shapes and seeds instead of its own, for a measurement
// that somebody asks for in addition to the gate. An empty list changes nothing. Named shapes need
// not gain: the guard applies to them, and no secret shape is timed.
func (p *Policy) Narrow(shapes []string, seeds []int64) {
	for i := range p.Rules {
		g := &p.Rules[i].Gates
		if g.Correctness != nil {
			own := *g.Correctness
			if len(seeds) > 0 {
				own.Seeds = seeds
			}
			if len(shapes) > 0 {
				own.Shapes = Shapes{Names: shapes}
			}
			g.Correctness = &own
		}
		if g.Performance != nil && len(shapes) > 0 {
			own := *g.Performance
			if goal := cmp.Or(own.Guard, own.Target); goal != nil {
				named := *goal
				named.Shapes = Shapes{Names: shapes}
				own.Target, own.Guard = nil, &named
				own.SecretShape = new(false)
			}
			g.Performance = &own
		}
	}
}

// Clone returns a copy whose rules Narrow can change, and whose gates can be removed, without an
// effect on p.
func (p *Policy) Clone() *Policy {
	own := *p
	own.Rules = slices.Clone(p.Rules)
	return &own
}

// AtMost bounds the rounds of every rule, and reports whether that cut any. The looks within the
// bound keep their places, so that decisions follow the policy's rule. Fewer than [MinRounds]
// decide nothing, so AtMost allows at least that many.
func (p *Policy) AtMost(rounds int) (cut bool) {
	rounds = max(rounds, MinRounds)
	for i := range p.Rules {
		gate := p.Rules[i].Gates.Performance
		if gate == nil || rounds >= int(gate.Rounds.Max) {
			continue
		}
		gate.Looks = append(slices.DeleteFunc(slices.Clone(gate.Looks), func(n int) bool { return n >= rounds }), rounds)
		cut = true
	}
	return cut
}

// AtLeast lets every rule measure this many rounds, if it has fewer, and gives it proportionally
// more time. It reports whether it raised any. The looks keep their places, and the last round is
// one more look.
func (p *Policy) AtLeast(rounds int) (raised bool) {
	for i := range p.Rules {
		gate := p.Rules[i].Gates.Performance
		if gate == nil || rounds <= int(gate.Rounds.Max) {
			continue
		}
		more := quantity.Duration(math.Ceil(float64(rounds) / max(1, float64(gate.Rounds.Max))))
		gate.Budget, gate.Timeout = gate.Budget*more, gate.Timeout*more
		gate.Rounds.Max = quantity.Count(rounds)
		gate.Looks = append(slices.Clone(gate.Looks), rounds)
		raised = true
	}
	return raised
}
