package report

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// shadowed is a verdict by a rule that does not block.
func shadowed() *gates.Verdict {
	v := tooSlow()
	v.Enforce = policy.EnforceShadow
	return v
}

// warned passes, and would be deferred by a rule that is tried as well.
func warned() *gates.Verdict {
	v := passing()
	v.Trial = &gates.Trial{
		Rule: "attention", Enforce: policy.EnforceWarn, Outcome: gates.Defer, Reason: gates.ReasonTooSlow,
		Summary: "Too slow: speedup +16.1\u00a0% [+15.7\u00a0%, +16.4\u00a0%] on mission (asked speedup >= +20%)",
	}
	return v
}

// A verdict that blocks nothing never reads as a pass, and one that counts has no such line.
func TestUnenforced(t *testing.T) {
	for _, v := range []*gates.Verdict{shadowed(), {Kernel: "k", Outcome: gates.Error, Reason: gates.ReasonRunner, Summary: "The host is busy.", Rule: "default", Enforce: policy.EnforceWarn}} {
		for _, text := range []string{OneLine(v), Headline(v), Terminal(v, TerminalOptions{})} {
			if strings.Contains(text, "PASS") || !strings.Contains(text, string(v.Enforce)+": would be "+string(v.Outcome)) || strings.Contains(text, Meaning) {
				t.Errorf("%s", text)
			}
		}
	}
	informed := tooSlow()
	informed.Enforce, informed.Provenance.Label = policy.EnforceInform, "h200"
	const want = "It blocks nothing: by the policy, `h200` only informs."
	if text := Headline(informed) + OneLine(informed); strings.Count(text, "inform: would be DEFER") != 2 || !strings.Contains(text, " on `h200`") || !strings.HasSuffix(Unenforced(informed)[0], want) {
		t.Errorf("%s\n%s", text, Unenforced(informed))
	}
	for name, v := range verdicts() {
		if v.Enforce == "" && v.Trial == nil && len(Unenforced(v)) > 0 {
			t.Errorf("%s: %q", name, Unenforced(v))
		}
	}
	for _, c := range []struct {
		trial gates.Trial
		want  string
	}{
		{gates.Trial{Rule: "a", Enforce: "shadow", Outcome: gates.Pass}, "shadow: rule `a` would be PASS. It does not block."},
		{gates.Trial{Rule: "a", Enforce: "shadow", Outcome: gates.Defer, Reason: "inconclusive", Lacks: gates.GatePerformance, Summary: "Nothing was timed."},
			"shadow: rule `a` is not decided: this run did not gather all that it needs for performance. It does not block."},
		{gates.Trial{Rule: "a`\n# b", Enforce: "warn", Outcome: gates.Defer, Reason: "correctness", Summary: "Not right."},
			"warn: rule `a' # b` would be DEFER (correctness) because not right. It does not block."},
	} {
		v := passing()
		v.Trial = &c.trial
		if got := strings.Join(Unenforced(v), "\n"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
