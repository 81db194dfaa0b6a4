package gates

import "github.com/kernelgate/kernelgate/gates/facts"

// cubinGrowth compares the machine code of both sides, of all kernels of a launch and of all variants that serve a shape.
func (j *judgement) cubinGrowth() GateResult {
	gate, was, is := j.rule.Gates.CubinGrowth, j.evidence.Baseline, j.evidence.Candidate
	if was == nil {
		return GateResult{Status: NotRun, Found: facts.NoBaseline{}}
	}
	before, known := was.codeSize()
	after, ok := is.codeSize()
	if !known || !ok {
		return GateResult{Status: Missing, Found: facts.NoResources{}}
	}
	found := facts.CodeSizes{Before: before, After: after, Limit: gate.Increase.String()}
	if !gate.Increase.Holds(found.Growth()) {
		return GateResult{Status: Failed, Reason: ReasonResources, Found: found, Steps: []facts.Advice{facts.Stated{Fact: found}}}
	}
	return GateResult{Status: Passed, Found: found}
}

// codeSize returns the bytes of machine code, and false if they were not recorded.
func (b *Build) codeSize() (total int, ok bool) {
	if b == nil {
		return 0, false
	}
	for _, part := range b.judged() {
		for _, u := range part.uses() {
			if u.Resources.CodeSize == nil {
				return 0, false
			}
			total += *u.Resources.CodeSize
		}
	}
	return total, total > 0
}
