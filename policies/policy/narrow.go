package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Narrow makes every rule ask about these shapes and seeds in place of its own,
// for a measurement that somebody asks for beside the gate. What is empty stays
// as it is. On shapes that were named nothing must be gained: the guard asks, and
// no secret shape is timed.
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

// AtMost bounds the rounds of every rule, and tells whether that cut any. The looks
// within the bound keep their places, so that what is decided is decided by the
// policy's rule; fewer than [MinRounds] decide nothing, so it allows that many.
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

// AtLeast lets every rule measure so many rounds, where it has fewer, in as much more time, and tells whether it raised any. The
// looks keep their places, and the last round is one more.
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
