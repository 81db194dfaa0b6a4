package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// PartialResults is the result of every gate whose evidence is gathered, in the order of the gates. A runner shows
// them while it gathers the rest. The same functions judge them, so that progress never shows a gate as passed that the
// verdict then calls failed.
func PartialResults(p *policy.Policy, e *Evidence) []GateResult {
	if e.Candidate == nil {
		return nil
	}
	j := &judgement{rule: ruleFor(p, e), evidence: e, resamples: newResamples(stats.DefaultResamples)}
	j.run()
	writeResults(j.results, facts.Reader{})
	return slices.DeleteFunc(j.results, func(r GateResult) bool {
		return !j.has(r.Gate) || r.Status == NotRun || r.Status == Missing
	})
}
