package gates

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		{"stage6_split", Defer, ReasonRegression, 0.4},     // slower on long where FP8 cannot resolve the scores
		{"stage6_wgmma", Defer, ReasonRegression, -0.4},    // made for long problems
		{"stage7", Defer, ReasonRegression, -0.5},          // made for long problems, too
		{"choose", Pass, "", 0.4},                          // the one of the three that fits the problem
		{"cold", Defer, ReasonRegression, 0.4},
		{"warm", Defer, ReasonRegression, 0.4},
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
					t.Errorf("the speedup on %s is %s", row.Shape, row.Speedup)
				}
			}
		})
	}
}

// Every variant is right on every shape that it takes; those that were timed on all of
// them are as fast as they say.
func TestRecordedOnAllShapes(t *testing.T) {
	first := []string{"stage0", "stage1", "stage2", "stage3a", "stage3a_xor"}
	later := []string{"stage3b", "stage4", "stage5", "stage6_fp8", "stage6_fp8_short", "stage6_split", "stage6_wgmma"}
	// Variants with other values of their toggles: a file's name has _ for each , and = of the variant's.
	files, err := filepath.Glob(filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "toggles", "*.json"))
	if err != nil || len(files) < 16 {
		t.Fatalf("%d files of toggles, %v", len(files), err)
	}
	var toggled []string
	for _, file := range files {
		toggled = append(toggled, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	plain := strings.NewReplacer(",", "_", "=", "_")
	for _, c := range []struct {
		policy, folder string
		cases, shapes  int // at least; shapes that were timed
		variants       []string
	}{
		// Every shape, seed and distribution, and secret ones. The first stages take neither D = 128 nor causal problems.
		{"everywhere.yaml", "everywhere", 6*3*5 + 6, 0, first},
		{"everywhere.yaml", "everywhere", 9*3*5 + 6, 0, later},
		{"everywhere.yaml", "everywhere", 19*3*5 + 6, 0, []string{"stage7", "stage7_unshared"}},  // D = 64 only
		{"everywhere.yaml", "everywhere", 9*3*5 + 6, 0, []string{"stage7_wide", "stage7_wide3"}}, // D = 128 only
		{"everywhere.yaml", "everywhere", 32*3*5 + 6, 0, []string{"choose"}},
		{"everywhere.yaml", "toggles", 9*3*5 + 6, 0, toggled},
		{"showcase.yaml", "all", 6*2 + 6, 6, slices.Concat(first, later)},
	} {
		folder := filepath.Join("..", "kernels", "sdpa_fp8")
		policy, err := os.ReadFile(filepath.Join(folder, c.policy))
		if err != nil {
			t.Fatal(err)
		}
		for _, variant := range c.variants {
			t.Run(c.folder+"/"+variant, func(t *testing.T) {
				e := readEvidence(t, filepath.Join(folder, "evidence", c.folder, variant+".json"))
				v := Judge(parsePolicy(t, string(policy)), c.policy, e)
				if v.Outcome != Pass {
					t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
				}
				if plain.Replace(e.Provenance.Head.Variant) != variant || len(e.Correctness.Cases) < c.cases || len(v.Comparisons) < c.shapes {
					t.Errorf("%s with %d cases, %d shapes timed; want %s with %d and %d", e.Provenance.Head.Variant, len(e.Correctness.Cases), len(v.Comparisons), variant, c.cases, c.shapes)
				}
			})
		}
	}
}
