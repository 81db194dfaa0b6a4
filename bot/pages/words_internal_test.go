package pages

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// TestSigns checks that a proven miss looks different from missing evidence, for a gate and for a
// shape as for the verdict.
func TestSigns(t *testing.T) {
	for name, c := range map[string]struct {
		got  sign
		want string
	}{
		"too slow":           {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonTooSlow}), "fail"},
		"inconclusive":       {gateSign(gates.GateResult{Status: gates.Open, Reason: gates.ReasonInconclusive}), "open"},
		"slower than before": {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonRegression}), "fail"},
		"wrong":              {gateSign(gates.GateResult{Status: gates.Failed, Reason: gates.ReasonCorrectness}), "fail"},
		"passed":             {gateSign(gates.GateResult{Status: gates.Passed}), "pass"},
		"target not reached": {rowSign(gates.Comparison{Role: gates.RoleTarget, Status: gates.Failed}), "fail"},
		"target undecided":   {rowSign(gates.Comparison{Role: gates.RoleTarget, Status: gates.Open}), "open"},
		"not judged":         {rowSign(gates.Comparison{Role: gates.RoleTarget, Status: gates.NotRun}), "none"},
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

// TestResourceTable checks that every variant has a row, and that a cell shows how much of its limit is used.
func TestResourceTable(t *testing.T) {
	row := func(name string, before, after float64) gates.ResourceRow {
		return gates.ResourceRow{Name: name, Unit: "B", Baseline: &before, Candidate: &after, Limit: "≤ 227KiB", Status: gates.Passed}
	}
	table := resourceTable(&gates.Verdict{Resources: []gates.ResourceRow{row("shared memory of wide", 83984, 226<<10), row("shared memory of short", 49152, 49152), {Name: "registers of short", Candidate: new(96.0), Status: gates.NotRun}}})
	if len(table.Rows) != 2 || len(table.Names) != 2 || table.Limits[0] != "≤ 227 KiB" || len(table.Rows[0].Cells) != 2 {
		t.Fatalf("the table is %+v", table)
	}
	wide, short := table.Rows[0].Cells[0], table.Rows[1].Cells[0]
	if wide.Text != "226 KiB" || wide.Before != "82.02 KiB" || !strings.Contains(string(wide.Fill), `width="99.6"`) {
		t.Errorf("the wide variant needs %+v", wide)
	}
	if short.Text != "48 KiB" || short.Before != "" || !strings.Contains(string(short.Fill), `width="21.1"`) {
		t.Errorf("the short variant needs %+v", short)
	}
}
