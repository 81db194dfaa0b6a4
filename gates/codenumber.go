package gates

import (
	"math"
	"strconv"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// codeAlpha is the part of the error rate that the n-th distinct machine code of a
// change may spend: alpha/(n(n+1)). These parts sum to alpha over all n, so an author
// who pushes one variant after the other does not get a new chance with each.
func codeAlpha(alpha float64, n int) float64 {
	k := float64(max(n, 1))
	return alpha / (k * (k + 1))
}

// proves tells whether a test proves its goal at this look: by its p-value and, for a
// later machine code, by the count of its rounds as well.
//
// A p-value far below one in a hundred rests on the shape that the noise is believed to
// have. Noise of a few fixed levels does not have that shape: by luck most rounds are on
// the same level, and the figures look exact. Counting the rounds that meet the goal
// assumes nothing but that rounds are independent: for a truth on the threshold each
// meets it with a chance of one half. So the n-th code needs a count that is rarer than
// 1 in 2^MinRounds by the factor by which its part of the error rate is smaller than the
// first's.
func (c *comparison) proves(t test) bool {
	if t.meet > c.alpha {
		return false
	}
	return c.number <= 1 || signP(t.agree, t.rounds) <= math.Ldexp(codeAlpha(1, c.number)/codeAlpha(1, 1), -policy.MinRounds)
}

// signP is the chance that at least so many of n fair coins show heads.
func signP(heads, n int) float64 {
	p, ways := 0.0, 1.0 // ways to choose k of n
	for k := n; k >= heads; k-- {
		p += math.Ldexp(ways, -n)
		ways *= float64(k) / float64(n-k+1)
	}
	return min(p, 1)
}

// agreeing counts the rounds that meet a goal.
func agreeing(s stats.Sample, meets func(round stats.Summary) bool) int {
	n := 0
	for _, values := range s.Rounds {
		if meets(stats.Describe(values)) {
			n++
		}
	}
	return n
}

// interimsOf is after how many rounds the n-th machine code is looked at. The policy's first
// look stays, although before so many rounds that proves can hold it can only show that
// the code is too slow. Further looks that come before that moment would waste their share
// of the error rate: there is one at that moment in their place.
func interimsOf(gate *policy.PerformanceGate, n int) []int {
	looks := gate.Looks[:1:1]
	first := looks[0] + int(math.Ceil(math.Log2(codeAlpha(1, 1)/codeAlpha(1, n))))
	for _, l := range append([]int{first}, gate.Looks...) {
		if l >= first && l > looks[len(looks)-1] {
			looks = append(looks, l)
		}
	}
	return looks
}

// MostRounds is how many rounds a first attempt at the n-th machine code of a change
// takes at most. It is the policy's maximum, or a few more for a very late machine code.
func MostRounds(gate *policy.PerformanceGate, n int) int {
	looks := interimsOf(gate, n)
	return looks[len(looks)-1]
}

// codeNumber is the number of the machine code that the rounds measure. Evidence
// that was parsed has one number in all rounds; otherwise the largest counts.
func codeNumber(rounds []Round) int {
	n := 1
	for _, r := range rounds {
		n = max(n, r.CodeNumber)
	}
	return n
}

// CodeNumber is the number of the machine code that was measured.
func (p *Performance) CodeNumber() int { return codeNumber(p.Rounds) }

// passesAsFirst tells whether an undecided comparison would have met its goals as the
// first machine code of the change: then only its number keeps it open.
func (c *comparison) passesAsFirst(number int) bool {
	if number <= 1 {
		return false
	}
	first := c.alpha * codeAlpha(1, 1) / codeAlpha(1, number)
	for _, s := range c.shapes {
		if s.status == Passed {
			continue
		}
		if s.tooFew || s.slowTail(c.alpha) != nil {
			return false
		}
		for _, t := range s.tests {
			if t.meet > first {
				return false
			}
		}
	}
	return true
}

// confidenceAt is the confidence of intervals that miss on each side at the rate alpha.
// It keeps the digits of alpha, however small that is.
func confidenceAt(alpha float64) float64 {
	level, _ := strconv.ParseFloat(strconv.FormatFloat(1-round(2*alpha), 'f', 14, 64), 64)
	return level
}
