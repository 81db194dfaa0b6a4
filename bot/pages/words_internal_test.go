package pages

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// TestSigns checks that a proven defect looks different from missing evidence, for a gate and for a
// shape as for the verdict.
func TestSigns(t *testing.T) {
	for name, c := range map[string]struct {
		got  sign
		want string
	}{
		"too slow":           {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonTooSlow}), "open"},
		"inconclusive":       {gateSign(gates.GateResult{Status: gates.Open, Reason: gates.ReasonInconclusive}), "open"},
		"slower than before": {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonRegression}), "fail"},
		"wrong":              {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonCorrectness}), "fail"},
		"passed":             {gateSign(gates.GateResult{Status: gates.Passed}), "pass"},
		"target not reached": {rowSign(gates.Comparison{Role: gates.RoleTarget, Status: gates.Failed}), "open"},
		"guard broken":       {rowSign(gates.Comparison{Role: gates.RoleGuard, Status: gates.Failed}), "fail"},
	} {
		if c.got.Class != c.want || c.got.Mark == "" || c.got.Word == "" {
			t.Errorf("%s: %+v, not %s", name, c.got, c.want)
		}
	}
}

func TestDeviceName(t *testing.T) {
	for name, want := range map[string]string{
		"Intel(R) Xeon(R) Processor @ 2.50GHz": "Intel Xeon 2.50GHz", "NVIDIA H200": "NVIDIA H200", "AMD EPYC 7763 64-Core Processor": "AMD EPYC 7763 64-Core", "": "",
	} {
		if got := deviceName(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
}

// TestGateTitles checks that the resource gate of a CPU kernel is not named after a CUDA tool.
func TestGateTitles(t *testing.T) {
	for kind, want := range map[string]string{"cpu": "resources", "gpu": "ptxas"} {
		p := RunPage{Verdict: &gates.Verdict{Device: gates.Device{Kind: kind}, Gates: []gates.GateResult{{Gate: gates.GatePTXAS}}}}
		if p.draw(); p.Steps[0].Title != want {
			t.Errorf("on a %s the gate is called %s, want %s", kind, p.Steps[0].Title, want)
		}
	}
}

// TestBarsSpaceUnits checks that a limit has the units of the numbers before it.
func TestBarsSpaceUnits(t *testing.T) {
	v := &gates.Verdict{Resources: []gates.ResourceRow{{Name: "shared memory", Unit: "B", Baseline: new(83984.0), Candidate: new(49152.0), Limit: "≤ 227KiB"}}}
	if drawn := string(bars(v)); !strings.Contains(drawn, "82.02 KiB → 48 KiB (≤ 227 KiB)") {
		t.Errorf("the bars show %s", drawn)
	}
}
