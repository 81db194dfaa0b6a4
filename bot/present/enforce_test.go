package present

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// enforced is a verdict by a rule that does not block.
func enforced(v *gates.Verdict, e policy.Enforce) *gates.Verdict {
	own := *v
	own.Enforce = e
	return &own
}

// A check succeeds only where every verdict that blocks is a pass. The others are told.
func TestChecksOfRulesThatDoNotBlock(t *testing.T) {
	pass, slow, broken := judge(t, "stage1", nil), judge(t, "stage3a", nil), judge(t, "broken", nil)
	fault := judge(t, "stage1", func(e *gates.Evidence) { e.Fault = "the GPU fell off the bus (Xid 79)" })
	shadow, warn := policy.EnforceShadow, policy.EnforceWarn
	for _, c := range []struct {
		name               string
		verdicts           []*gates.Verdict
		conclusion, status string
		title              string // begins
	}{
		{"shadow", []*gates.Verdict{enforced(slow, shadow)}, success, "success", "shadow: would be DEFER (too-slow) sdpa_fp8: "},
		{"warn", []*gates.Verdict{enforced(broken, warn)}, success, "success", "warn: would be DEFER (correctness) sdpa_fp8: "},
		{"shadow of a pass", []*gates.Verdict{enforced(pass, shadow)}, success, "success", "PASS sdpa_fp8: "},
		{"warn of a fault", []*gates.Verdict{enforced(fault, warn)}, success, "success", "warn: would be ERROR (runner) sdpa_fp8: "},
		{"an unknown word blocks", []*gates.Verdict{enforced(slow, "none")}, failure, "failure", "DEFER (too-slow) sdpa_fp8: "},
		{"one of two blocks", []*gates.Verdict{enforced(slow, shadow), broken}, failure, "failure", "DEFER: 1 of 2 kernels (gemm_fp8: correctness)"},
		{"a fault that blocks", []*gates.Verdict{enforced(slow, shadow), fault}, failure, "error", "Runner: 1 of 2 kernels could not be judged (gemm_fp8)"},
		{"none of two blocks", []*gates.Verdict{enforced(slow, shadow), pass}, success, "success", "shadow: 1 of 2 kernels would not pass (sdpa_fp8: too-slow); 1 of 2 kernels PASS"},
		{"both would not pass", []*gates.Verdict{enforced(slow, shadow), enforced(broken, warn)}, success, "success", "warn: 2 of 2 kernels would not pass (sdpa_fp8: too-slow, gemm_fp8: correctness)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			names := []string{"sdpa_fp8", "gemm_fp8"}[:len(c.verdicts)]
			s := tell(t).seen(nil).planned(nil, names...)
			for i, v := range c.verdicts {
				s = s.finished(names[i], v)
			}
			check := Checks(s.view)[0]
			if state, _ := check.CommitStatus(); check.Conclusion != c.conclusion || state != c.status || !strings.HasPrefix(check.Title, c.title) {
				t.Errorf("%s, as a status %s: %s", check.Conclusion, state, check.Title)
			}
		})
	}
}

// Only a pass, and a verdict by a rule that says so, block nothing.
func TestResultsBlock(t *testing.T) {
	for _, c := range []struct {
		result *change.Result
		blocks bool
	}{
		{nil, true},
		{&change.Result{}, true},
		{&change.Result{Enforce: policy.EnforceShadow}, true}, // without a word
		{&change.Result{Outcome: "pass", Enforce: policy.EnforceShadow}, true},
		{&change.Result{Outcome: gates.Pass}, false},
		{&change.Result{Outcome: gates.Defer}, true},
		{&change.Result{Outcome: gates.Defer, Enforce: "Shadow"}, true},
		{&change.Result{Outcome: gates.Defer, Enforce: policy.EnforceShadow}, false},
		{&change.Result{Outcome: gates.Error, Enforce: policy.EnforceWarn}, false},
	} {
		if c.result.Blocks() != c.blocks {
			t.Errorf("%+v blocks: %t", c.result, !c.blocks)
		}
	}
}

// /explain says which verdicts block nothing.
func TestExplainEnforce(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(`version: 1
gates: {build: {timeout: 1m}}
rules:
  - {name: attention, when: {kernels: ["sdpa*"]}, enforce: warn}
  - {name: gemm, when: {kernels: ["gemm*"], branches: [main]}}
  - {name: default, enforce: shadow}
`))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "explain-enforce.md", explain(p, "p.yaml", policy.Change{Kernel: "sdpa_fp8", Branch: "main"})+"\n"+
		explain(p, "p.yaml", policy.Change{Kernel: "other"}))
	p.Rules[2].Enforce = policy.EnforceBlock
	golden(t, "explain-trial.md", explain(p, "p.yaml", policy.Change{Kernel: "sdpa_fp8", Branch: "main"}))
}
