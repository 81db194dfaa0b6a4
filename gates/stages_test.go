package gates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

func shippedPolicy(t testing.TB, name string) *policy.Policy {
	t.Helper()
	text, err := policies.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(name+".yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readEvidence(t testing.TB, file string) *Evidence {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEvidence(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The kernel's history on an L4 is what every gate must judge the same way as
// the people who lived it.
func TestStagesOnL4(t *testing.T) {
	for _, c := range []struct {
		stage, policy string
		rule          string
		outcome       Outcome
		reason        Reason
		says          string
	}{
		{"stage1", "l4", "default", Pass, "", "speedup +16.1\u00a0% on mission"},
		{"stage2", "l4", "tensor-cores", Pass, "", "speedup +82.9\u00a0% on batch"},
		{"stage3a", "l4", "default", Defer, ReasonTooSlow, "speedup +0.16\u00a0% on mission"},
		{"stage3a_xor", "l4", "default", Defer, ReasonTooSlow, "speedup +0.16\u00a0% on mission"},
		{"stage3b", "l4", "default", Defer, ReasonCorrectness, "0/6 cases in the report, max |err| 4.1"},
		{"stage4", "l4", "default", Defer, ReasonTooSlow, "speedup +0.70\u00a0% on mission"},
		// The same stage 1 on an H200: verdicts belong to a device.
		{"stage1_h200", "h200", "default", Defer, ReasonTooSlow, "speedup +6.8\u00a0% on mission"},
	} {
		t.Run(c.stage, func(t *testing.T) {
			e := readEvidence(t, filepath.Join("testdata", "stages", c.stage+".json"))
			v := Judge(shippedPolicy(t, c.policy), c.policy+".yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason || v.Rule != c.rule {
				t.Fatalf("got %s (%s) by rule %s: %s; want %s (%s) by %s", v.Outcome, v.Reason, v.Rule, v.Summary, c.outcome, c.reason, c.rule)
			}
			if !strings.Contains(v.Summary, c.says) {
				t.Errorf("the summary %q does not say %q", v.Summary, c.says)
			}
			if v.Imported == "" {
				t.Error("the verdict is not marked as coming from an older report")
			}
		})
	}
}

// A report that says nothing about correctness cannot pass, however fast the
// kernel is.
func TestImportedWithoutCorrectnessDoesNotPass(t *testing.T) {
	e := readEvidence(t, filepath.Join("testdata", "stages", "stage1.json"))
	e.Correctness = nil
	v := Judge(shippedPolicy(t, "l4"), "l4.yaml", e)
	if v.Outcome != Defer || v.Reason != ReasonInconclusive {
		t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}
