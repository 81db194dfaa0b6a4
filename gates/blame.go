package gates

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A change is not blamed for a fault that both sides have, nor for one that was there before it.

// unlessSame judges a gate, unless it asks about a candidate that is the baseline,
// byte for byte: that was decided when the baseline was merged. What such a change
// gains is the performance gate's own question.
func (j *judgement) unlessSame(gate Gate, judge func() GateResult) GateResult {
	if !j.evidence.SameCode || gate == GateBuild || gate == GatePerformance {
		return judge()
	}
	if gate == GateProfile && j.evidence.Performance != nil {
		return judge() // an absolute time was asked, so that it was run
	}
	if j.has(gate) {
		judge() // what was seen is shown
	}
	return GateResult{Status: Passed, Found: facts.MergedCode{}}
}

// sameRefusal tells whether both sides were refused for one reason, whatever lines the
// change has moved it to.
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
// bounds.
func baselineProblem(gate *policy.CorrectnessGate, k Case) string {
	switch {
	case k.BaselineFailure != nil:
		return k.BaselineFailure.Detail
	case k.Baseline == nil:
		return ""
	}
	return Case{Errors: k.Baseline}.Problem(gate)
}

// A wrongCase is one that the candidate fails.
type wrongCase struct {
	Case
	problem, already string // of the candidate; of the baseline, where it fails too
	existed          bool   // the baseline fails it at least as badly
}

// newWrongCase is a case as the gate sees it; nothing is wrong with one without a problem.
func newWrongCase(gate *policy.CorrectnessGate, k Case) wrongCase {
	misses := k.misses(gate)
	w := wrongCase{Case: k, existed: existed(misses)}
	if len(misses) > 0 {
		w.problem, w.already = misses[0].text, baselineProblem(gate, k)
	}
	return w
}

// wrongOutput tells whether both sides fail the case by what they computed: outputs that
// agree with the reference and vary in their last bits are no sign of a wrong setup.
func (w wrongCase) wrongOutput() bool { return w.problem != "" && w.already != "" }

func (w wrongCase) String() string {
	text := fmt.Sprintf("%s: %s", w.label(), w.problem)
	switch {
	case w.existed:
		return text + " (the baseline has it as well)"
	case w.already == "":
		return text
	case w.already == w.problem:
		return text + " (the baseline is wrong there too, but less)"
	}
	return fmt.Sprintf("%s (the baseline is wrong there too: %s)", text, w.already)
}

// decides tells whether wrong cases decide the gate: one of them is the change's own, or
// the policy defers for existing ones as well, or there is no case that proves anything.
func decides(gate *policy.CorrectnessGate, wrong []wrongCase, total int) bool {
	if len(wrong) == 0 {
		return false
	}
	caused := slices.ContainsFunc(wrong, func(w wrongCase) bool { return !w.existed })
	return caused || gate.Existing == policy.ExistingDefers || everyOutputWrong(wrong, total)
}

func everyOutputWrong(wrong []wrongCase, total int) bool {
	return len(wrong) == total && !slices.ContainsFunc(wrong, func(w wrongCase) bool { return !w.wrongOutput() })
}

// wrong judges cases that the candidate fails, those that the baseline does not fail
// first.
func (j *judgement) wrong(cases []wrongCase, total int) GateResult {
	slices.SortStableFunc(cases, func(a, b wrongCase) int {
		return cmp.Or(boolOrder(a.existed)-boolOrder(b.existed), boolOrder(a.already != "")-boolOrder(b.already != ""))
	})
	before := 0
	r := GateResult{Status: Failed, Reason: ReasonCorrectness}
	for _, c := range cases {
		r.Details = append(r.Details, fmt.Sprintf("%s [%s]", c, c.flags()))
		before += boolOrder(c.existed)
	}
	first := cases[0]
	if everyOutputWrong(cases, total) {
		return GateResult{
			Status: Failed, Reason: ReasonSetup, Details: r.Details,
			Text: fmt.Sprintf("Baseline and candidate are both wrong in every case (%d); first: %s", total, first),
			ToPass: []string{
				"hold kernel.yaml against the kernel's parameters (order, dtype, shape) and the reference against what the kernel computes, and mend what is wrong on the base branch",
				"see for yourself: " + j.evidence.replay(first.Case),
			},
		}
	}
	r.Text = fmt.Sprintf("The output is wrong in %d of %d cases; first: %s", len(cases), total, first)
	r.ToPass = []string{"make every case agree with the reference; reproduce the first one: " + j.evidence.replay(first.Case)}
	switch {
	case before == len(cases):
		r.Text += ". They were wrong before this change"
		r.ToPass = append(r.ToPass, "or fix them on the base branch first: the policy defers for them as well (gates.correctness.existing)")
	case before > 0:
		r.Text += fmt.Sprintf(". %d of them were wrong before this change", before)
	}
	return r
}

// wrongBefore is the pass of a change that has caused none of the wrong cases. It says so
// wherever the verdict is read, so that somebody fixes them.
func (j *judgement) wrongBefore(cases []wrongCase, passed, total int) GateResult {
	r := GateResult{
		Status: Passed,
		Text:   fmt.Sprintf("%d of %d cases agree with the reference; %d fail as they did before this change (see below)", passed, total, len(cases)),
	}
	for _, c := range cases {
		r.Details = append(r.Details, fmt.Sprintf("as before: %s: %s [%s]", c.label(), c.problem, c.flags()))
	}
	j.existing = append(j.existing, fmt.Sprintf("%d of %d cases fail as before", len(cases), total))
	j.noteText(fmt.Sprintf(
		"The baseline is wrong in %d of %d cases, and this change does not make them worse: fix the kernel on the base branch. The first: %s: %s.",
		len(cases), total, cases[0].label(), cases[0].problem))
	return r
}

// tested is the word of a harness's own test command.
func (j *judgement) tested(t *Test) GateResult {
	switch {
	case t.Failure == nil:
		j.noteText("The test command's exit status is the only word on the output: no element was compared, and none of what was timed.")
		return GateResult{Status: Passed, Text: fmt.Sprintf("the test command %s ended well", t.Command)}
	case t.Baseline != nil:
		return GateResult{
			Status: Failed, Reason: ReasonSetup,
			Text:  fmt.Sprintf("The test command fails on both sides: %s (the baseline: %s)", t.Failure.Detail, t.Baseline.Detail),
			Steps: []facts.Advice{facts.FixBase{}},
		}
	}
	return GateResult{
		Status: Failed, Reason: ReasonCorrectness, Text: "The test command fails: " + t.Failure.Detail,
		ToPass: []string{"make the test command end with status 0: " + t.Command},
	}
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}
