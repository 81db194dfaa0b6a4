package actions

import (
	"fmt"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// maxAttempts at one commit. Each is judged at half the error rate of the one
// before it; further ones could hardly decide anything.
const maxAttempts = 6

// tighten makes every rule ask for the confidence that the nth attempt is judged
// at. The gates let a first attempt spend half of the error rate, so the attempts
// spend a half, a quarter, an eighth of the policy's, as a bot's do: together never
// more than it allows, although each measures anew and knows nothing of the
// others.
func tighten(p *policies.Policy, attempt int) (note string) {
	if attempt <= 1 {
		return ""
	}
	timed := false
	for gate := range performance(p) {
		gate.Confidence = 1 - (1-gate.Confidence)/quantity.Percent(int(1)<<(attempt-1))
		timed = true
	}
	if !timed {
		return ""
	}
	return fmt.Sprintf("Attempt %d at this commit, measured anew: its error rate is 1/%d of the policy's, so that all attempts together keep to the policy's confidence.", attempt, int(1)<<(attempt-1))
}

// fewer bounds the rounds, and says so where that matters.
func fewer(p *policies.Policy, rounds int) (note string) {
	if rounds <= 0 || !p.AtMost(rounds) {
		return ""
	}
	return fmt.Sprintf("At most %d rounds were allowed.", max(rounds, policies.MinRounds))
}

// performance is each rule's gate, once.
func performance(p *policies.Policy) func(func(*policies.PerformanceGate) bool) {
	return func(yield func(*policies.PerformanceGate) bool) {
		seen := map[*policies.PerformanceGate]bool{}
		for i := range p.Rules {
			gate := p.Rules[i].Gates.Performance
			if gate == nil || seen[gate] {
				continue
			}
			if seen[gate] = true; !yield(gate) {
				return
			}
		}
	}
}
