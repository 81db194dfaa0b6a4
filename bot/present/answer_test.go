package present

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	gateswhy "github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Every answer has its sentences, and none of them is a command.
func TestAnswers(t *testing.T) {
	head, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	roles := policy.DefaultCommands()
	rules := &change.AppliedRules{
		File: ".github/kernelgate.yaml", Policy: "version: 1\ngates: {correctness: {norm_error: \"<= 1%\"}}\nrules:\n  - {name: docs, when: {labels: [docs]}}\n  - {name: default}\n",
		Change: policy.Change{Branch: "main", Labels: []string{"docs"}}, Kernels: []change.AppliedKernel{{Name: "scale", Paths: []string{"kernels/scale/scale.cu"}}, {Name: "gemm"}},
	}
	row := gateswhy.Row{ID: "conflicts", Name: "bank conflicts for each access to shared memory", Baseline: new(15.5), Candidate: new(0.0), Moved: true}
	stored := []gates.Why{{Shape: "mission", Sentence: "bank conflicts for each access to shared memory 15.5 → 0: fewer bank conflicts in shared memory", Explanation: gateswhy.Explanation{Rows: []gateswhy.Row{row}}}}
	all := []change.Answer{
		{Kind: change.AnswerMisread}, {Kind: change.AnswerNoCommand},
		{Kind: change.AnswerRole, Command: "override", Needs: "maintain", Has: "write"},
		{Kind: change.AnswerUnavailable, Command: "cancel"}, {Kind: change.AnswerBaseGone},
		{Kind: change.AnswerHeadMoved, Head: head}, {Kind: change.AnswerNotHead, Command: "ok-to-test", SHA: "aaaa", Head: head},
		{Kind: change.AnswerHelp, Roles: &roles}, {Kind: change.AnswerHelp, Workflow: true},
		{Kind: change.AnswerExplainNoBase}, {Kind: change.AnswerExplainUnread}, {Kind: change.AnswerExplainRefused}, {Kind: change.AnswerExplainMistakes},
		{Kind: change.AnswerExplainNoPolicy}, {Kind: change.AnswerExplainNoKernel}, {Kind: change.AnswerExplainedByRules, Rules: rules},
		{Kind: change.AnswerOverridden, Head: head}, {Kind: change.AnswerOverridden, Head: head, RulesWait: true},
		{Kind: change.AnswerNoFork}, {Kind: change.AnswerNeverForks}, {Kind: change.AnswerForkWaits, Head: head}, {Kind: change.AnswerForkApproved, Head: other},
		{Kind: change.AnswerBaseMoved, Base: "rel`ease"}, {Kind: change.AnswerRulesMoved}, {Kind: change.AnswerNothingRuns}, {Kind: change.AnswerCancelled}, {Kind: change.AnswerUnread}, {Kind: change.AnswerRulesUnchanged}, {Kind: change.AnswerRulesTightened},
		{Kind: change.AnswerOwnChange}, {Kind: change.AnswerOwnPush, Head: head}, {Kind: change.AnswerPusherUnknown, Head: head}, {Kind: change.AnswerRulesApproved, Head: head},
		{Kind: change.AnswerPlanMistakes}, {Kind: change.AnswerNoKernel}, {Kind: change.AnswerNoKernel, Workflow: true}, {Kind: change.AnswerWorkflowAsks},
		{Kind: change.AnswerUnknownKernel, Word: "sc`le", Kernels: []string{"scale", "gemm"}},
		{Kind: change.AnswerSeveralKernels, Word: "scale", Kernels: []string{"kernels/scale", "kernels/other"}},
		{Kind: change.AnswerKernelGone}, {Kind: change.AnswerNoProfile},
		{Kind: change.AnswerSpent, Kernels: []string{"scale"}, Quote: "this commit was measured 6 times already"},
		{Kind: change.AnswerRemeasuring, Kernels: []string{"scale", "gemm"}}, {Kind: change.AnswerBusy, Busy: []string{"gemm"}},
		{Kind: change.AnswerMoreRounds}, {Kind: change.AnswerMoreRounds, Decided: []string{"scale (kernels/other)", "scale"}, Busy: []string{"gemm"}},
		{Kind: change.AnswerExtraRun}, {Kind: change.AnswerCannotServe, Quote: "scale has no shape \"```huge```\" (it has small)"},
		{Kind: change.AnswerTuning, Kernels: []string{"scale"}}, {Kind: change.AnswerBisecting, Kernels: []string{"scale"}},
		{Kind: change.AnswerWhichKernel, Command: "tune", Kernels: []string{"scale", "gemm"}}, {Kind: change.AnswerSearchRuns, Command: "bisect", Kernels: []string{"scale"}},
		{Kind: change.AnswerUnknownDevice, Word: "a100", Devices: []string{"l4", "h200"}}, {Kind: change.AnswerUnknownDevice, Word: "l4"},
		{Kind: change.AnswerReasons, Reasons: []change.Reasons{{Kernel: "scale", Shapes: stored}}},
		{Kind: change.AnswerReasons, Reasons: []change.Reasons{{Kernel: "scale", Shapes: stored}, {Kernel: "gemm", Shapes: stored}}, Kernels: []string{"relu"}, Busy: []string{"norm"}},
		{Kind: change.AnswerWhyNeedsRun, Kernels: []string{"gemm"}, Needs: "write", Has: "read", Reasons: []change.Reasons{{Kernel: "scale", Shapes: stored}}},
		{Kind: "of_tomorrow"},
	}
	source, err := os.ReadFile("../change/answer.go")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, m := range regexp.MustCompile(`AnswerKind = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		missing[m[1]] = true
	}
	if len(missing) < 40 {
		t.Errorf("there are only %d kinds of answers", len(missing))
	}
	var b strings.Builder
	for _, a := range all {
		delete(missing, string(a.Kind))
		text := AnswerText(change.Command{Asked: change.Asked{Request: grammar.Read("/rebanch")}, Answered: true, Answer: a})
		if r, ok := grammar.Parse(text); ok {
			t.Errorf("%s commands %v", a.Kind, r)
		}
		fmt.Fprintf(&b, "## %s\n%s\n\n", a.Kind, strings.TrimSpace(text))
	}
	if len(missing) > 0 {
		t.Errorf("answers without an example here: %v", missing)
	}
	golden(t, "answers.md", b.String())
}

// A command that nobody has answered has no words, and neither has an explanation whose rules were lost.
func TestNoAnswerText(t *testing.T) {
	if text := AnswerText(change.Command{}); text != "" {
		t.Errorf("no answer reads %q", text)
	}
	if text := AnswerText(change.Command{Answer: change.Answer{Kind: change.AnswerMisread}}); text != "This is not a command." {
		t.Errorf("a mistake that is not there reads %q", text)
	}
	bad := &change.AppliedRules{File: "p.yaml", Policy: "version: ["}
	if text := AnswerText(change.Command{Answer: change.Answer{Kind: change.AnswerExplainedByRules, Rules: bad}}); !strings.HasPrefix(text, "The policy cannot be read: p.yaml") {
		t.Errorf("a policy with mistakes reads %q", text)
	}
}
