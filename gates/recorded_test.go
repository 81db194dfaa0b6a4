package gates

import (
	"os"
	"path/filepath"
	"testing"
)

// Evidence from a real GPU, judged again: a verdict does not change with the
// years, nor with the program, unless somebody means it to.
func TestRecordedOnH200(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome Outcome
		reason  Reason
		least   float64 // the target's speedup, from its lower bound
	}{
		{"stage1", Pass, "", 0.1},
		{"stage2", Pass, "", 0.25},
		{"stage3a", Defer, ReasonTooSlow, -0.02},
		{"stage3a_xor", Defer, ReasonRegression, -0.05},
		{"stage3b", Pass, "", 2.5},
		{"stage4", Defer, ReasonRegression, -0.05},
		{"stage5", Defer, ReasonTooSlow, 0.01},
		{"stage6_fp8", Pass, "", 0.15},
		{"stage6_fp8_short", Defer, ReasonRegression, 0.2}, // faster on the target, slower on a guard
		{"stage6_split", Defer, ReasonCorrectness, 0},      // weights are rounded, their sum is not
		{"stage6_wgmma", Defer, ReasonCorrectness, 0},
		{"cold", Pass, "", 0.25},
		{"warm", Pass, "", 0.25},
		{"broken", Defer, ReasonCorrectness, 0}, // a sum that is not rescaled
		{"spills", Defer, ReasonResources, 0},   // a quarter of the registers
	} {
		t.Run(c.name, func(t *testing.T) {
			e := readEvidence(t, filepath.Join("..", "kernels", "sdpa_fp8", "evidence", c.name+".json"))
			if e.Device.Name != "NVIDIA H200" || e.Provenance.Head.SHA == "" {
				t.Errorf("the evidence does not say where it comes from: %+v", e.Device)
			}
			v := Judge(shippedPolicy(t, "h200"), "h200.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			for _, row := range v.Comparisons {
				if row.Role == "target" && *row.Speedup.Lower < c.least {
					t.Errorf("the speedup on %s is %s", row.Shape, estimate(row.Speedup))
				}
			}
		})
	}
}

// The first stages are right on every shape that they take.
func TestRecordedOnAllShapes(t *testing.T) {
	policy, err := os.ReadFile(filepath.Join("..", "kernels", "sdpa_fp8", "showcase.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "all", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no evidence is there (%v)", err)
	}
	for _, file := range files {
		e := readEvidence(t, file)
		v := Judge(parsePolicy(t, string(policy)), "showcase.yaml", e)
		if v.Outcome != Pass || len(v.Comparisons) < 6 {
			t.Errorf("%s: %s (%s) on %d shapes: %s", file, v.Outcome, v.Reason, len(v.Comparisons), v.Summary)
		}
	}
}
