package gates

import (
	"cmp"
	"path"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A change is not blamed for a fault that both sides have, nor for one that was there before it.

// sameRefusal reports whether the compiler refused both sides for the same reason, even if the
// change has moved it to a different line.
func sameRefusal(b, c *Build) bool {
	if b == nil || b.OK || c.OK {
		return false
	}
	was, is := b.errors(), c.errors()
	if len(was) == 0 || len(is) == 0 {
		return b.Error == c.Error
	}
	return was[0].Message == is[0].Message && path.Base(was[0].File) == path.Base(is[0].File)
}

// baselineProblem is what is wrong with the baseline on the same case, by the same
// bounds; nil where nothing is.
func baselineProblem(gate *policy.CorrectnessGate, k Case) facts.Fact {
	if k.BaselineFailure != nil {
		return facts.Quote(k.BaselineFailure.Detail)
	}
	if k.Baseline == nil {
		return nil
	}
	if all := (Case{Errors: k.Baseline}).misses(gate); len(all) > 0 {
		return all[0].fact
	}
	return nil
}

// newWrongCase is the case as one that the candidate fails; it is not ok where it does not.
func newWrongCase(gate *policy.CorrectnessGate, k Case) (w facts.WrongCase, ok bool) {
	misses := k.misses(gate)
	if len(misses) == 0 {
		return w, false
	}
	return facts.WrongCase{Input: k.Input, Problem: misses[0].fact, Baseline: baselineProblem(gate, k), Existed: existed(misses)}, true
}

// decides reports whether wrong cases decide the gate: the change has caused one of them, or
// the policy defers for existing ones as well, or there is no case that proves anything.
func decides(gate *policy.CorrectnessGate, wrong []facts.WrongCase, total int) bool {
	if len(wrong) == 0 {
		return false
	}
	caused := slices.ContainsFunc(wrong, func(w facts.WrongCase) bool { return !w.Existed })
	return caused || gate.Existing == policy.ExistingDefers || everyOutputWrong(wrong, total)
}

// everyOutputWrong reports whether both sides fail every case by what they computed. Outputs that
// agree with the reference and vary in their last bits are no sign of a wrong setup.
func everyOutputWrong(wrong []facts.WrongCase, total int) bool {
	return len(wrong) == total && !slices.ContainsFunc(wrong, func(w facts.WrongCase) bool { return w.Baseline == nil })
}

// wrong judges cases that the candidate fails, those that the baseline does not fail
// first.
func (j *judgement) wrong(cases []facts.WrongCase, total int) GateResult {
	slices.SortStableFunc(cases, func(a, b facts.WrongCase) int {
		return cmp.Or(toInt(a.Existed)-toInt(b.Existed), toInt(a.Baseline != nil)-toInt(b.Baseline != nil))
	})
	r := GateResult{Status: Failed, Reason: ReasonCorrectness}
	found := facts.WrongOutput{Cases: len(cases), All: total, First: cases[0]}
	for _, c := range cases {
		r.More = append(r.More, facts.Reproducible{WrongCase: c})
		found.Existed += toInt(c.Existed)
	}
	replay := j.evidence.replay(found.First.Input)
	if everyOutputWrong(cases, total) {
		r.Reason, r.Found = ReasonSetup, facts.BothWrong{Cases: total, First: found.First}
		r.Steps = []facts.Advice{facts.CheckManifest{}, facts.SeeForYourself{Command: replay}}
		return r
	}
	r.Found, r.Steps = found, []facts.Advice{facts.AgreeWithReference{Command: replay}}
	if j.timedOut(found.First.Input) {
		r.Steps = []facts.Advice{facts.EndInTime{Command: replay}}
	}
	if found.Existed == len(cases) {
		r.Steps = append(r.Steps, facts.FixExistingCases{})
	}
	return r
}

// timedOut reports whether the candidate did not end on an input: it computed nothing that could disagree with the reference.
func (j *judgement) timedOut(i Input) bool {
	return j.evidence.Correctness != nil && slices.ContainsFunc(j.evidence.Correctness.Cases, func(k Case) bool {
		return k.Input == i && k.Failure != nil && k.Failure.Kind == FailureTimeout
	})
}

// wrongBefore is the pass of a change that has caused none of the wrong cases. The verdict
// names them wherever it is read, so that somebody fixes them.
func (j *judgement) wrongBefore(cases []facts.WrongCase, total int) GateResult {
	r := GateResult{Status: Passed, Found: facts.NoneWorse{Wrong: len(cases), All: total}}
	for _, c := range cases {
		r.More = append(r.More, facts.AsBefore{Input: c.Input, Problem: c.Problem})
	}
	j.existing = append(j.existing, facts.ExistingCases{Wrong: len(cases), All: total})
	j.note(facts.WrongBaseline{Wrong: len(cases), All: total, First: cases[0]})
	return r
}

// tested judges by the exit status of a harness's test command.
func (j *judgement) tested(t *Test) GateResult {
	switch {
	case t.Failure == nil:
		j.note(facts.StatusOnly{})
		return GateResult{Status: Passed, Found: facts.TestPassed{Command: t.Command}}
	case t.Baseline != nil:
		return GateResult{
			Status: Failed, Reason: ReasonSetup,
			Found: facts.TestFailed{Detail: t.Failure.Detail, Baseline: t.Baseline.Detail}, Steps: []facts.Advice{facts.FixBase{}},
		}
	}
	return GateResult{
		Status: Failed, Reason: ReasonCorrectness,
		Found: facts.TestFailed{Detail: t.Failure.Detail}, Steps: []facts.Advice{facts.PassTest{Command: t.Command}},
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
