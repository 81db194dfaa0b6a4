package gates

import (
	"math"
	"strconv"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// codeAlpha is the part of the error rate that the n-th distinct machine code of a change may spend:
// alpha/(n(n+1)). These parts sum to alpha over all n, so an author who pushes many variants does
// not get a new chance with each.
func codeAlpha(alpha float64, n int) float64 {
	k := float64(max(n, 1))
	return alpha / (k * (k + 1))
}

// CodeShare is the part of the policy's error rate that the n-th distinct machine code may spend.
func CodeShare(n int) float64 { return codeAlpha(1, n) }

// FirstRounds is after how many rounds the n-th machine code can pass at the earliest.
func FirstRounds(gate *policy.PerformanceGate, n int) int {
	if n <= 1 {
		return gate.Interims[0]
	}
	return gate.Interims[0] + int(math.Ceil(math.Log2(codeAlpha(1, 1)/codeAlpha(1, n))))
}

// MostCodes is how many machine codes an author who asks a gate directly may have measured before the
// error rate counts as spent: those that can pass within the policy's rounds, or within ten more than
// its first analysis.
func MostCodes(gate *policy.PerformanceGate) int {
	n, most := 1, max(gate.Interims[len(gate.Interims)-1], gate.Interims[0]+10)
	for FirstRounds(gate, n+1) <= most && n < maxCodes {
		n++
	}
	return n
}

// maxCodes bounds MostCodes for policies with very many rounds.
const maxCodes = 1000

// proves reports whether a test proves its goal at this interim analysis: by its p-value and, for a
// later machine code, also by the number of rounds that meet the goal.
//
// A p-value far below one in a hundred depends on the assumed distribution of the noise. Noise of a
// few fixed levels does not follow it: by chance most rounds are on one level, and the figures look
// exact. The sign test on the rounds assumes only that rounds are independent: if the truth lies on
// the threshold, each meets the goal with probability one half. So the n-th code needs a sign test
// that is rarer than 1 in 2^MinRounds by the factor by which its part of the error rate is smaller
// than that of the first code.
func (c *comparison) proves(t test) bool {
	if t.meet > c.alpha {
		return false
	}
	return c.number <= 1 || signP(t.agree, t.rounds) <= math.Ldexp(codeAlpha(1, c.number)/codeAlpha(1, 1), -policy.MinRounds)
}

// signP is the p-value of the sign test: the probability that at least so many of n fair coins show
// heads.
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

// interimsOf is after how many rounds the n-th machine code has its interim analyses. The policy's
// first analysis stays: with so few rounds no test can prove a later code, but it can show that the
// code is too slow. Further analyses before the sign test can succeed would waste their share of the
// error rate, so one analysis at that moment replaces them.
func interimsOf(gate *policy.PerformanceGate, n int) []int {
	interims := gate.Interims[:1:1]
	first := FirstRounds(gate, n)
	for _, l := range append([]int{first}, gate.Interims...) {
		if l >= first && l > interims[len(interims)-1] {
			interims = append(interims, l)
		}
	}
	return interims
}

// MostRounds is the largest number of rounds of a first attempt at the n-th machine code of a
// change. It is the policy's maximum, or a few more for a very late machine code.
func MostRounds(gate *policy.PerformanceGate, n int) int {
	interims := interimsOf(gate, n)
	return interims[len(interims)-1]
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

// passesAsFirst reports whether an undecided comparison would have met its goals as the first
// machine code of the change. Then only its number leaves it undecided.
func (c *comparison) passesAsFirst(number int) bool {
	if number <= 1 {
		return false
	}
	first := c.alpha * codeAlpha(1, 1) / codeAlpha(1, number)
	for _, s := range c.judged() {
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

// confidenceAt is the confidence of intervals whose error rate is alpha on each side. It keeps the
// digits of alpha, however small that is.
func confidenceAt(alpha float64) float64 {
	level, _ := strconv.ParseFloat(strconv.FormatFloat(1-round(2*alpha), 'f', 14, 64), 64)
	return level
}
