package gates

import (
	"fmt"
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
		{"stage6_split", Pass, "", 0.5},
		{"stage6_wgmma", Defer, ReasonRegression, -0.4}, // made for long problems
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

// Every variant is right on every shape that it takes; those that were timed on all of
// them are as fast as they say.
func TestRecordedOnAllShapes(t *testing.T) {
	for _, c := range []struct {
		policy, folder string
		cases          int // at least, of a variant that takes no causal problem
		shapes         int // timed
		variants       []string
	}{
		{"everywhere.yaml", "everywhere", 6*3*5 + 6, 0, []string{"stage0", "stage1", "stage2", "stage3a", "stage3a_xor", "stage3b", "stage4", "stage5", "stage6_fp8", "stage6_fp8_short", "stage6_split", "stage6_wgmma"}},
		{"showcase.yaml", "all", 6*2 + 6, 6, []string{"stage0", "stage1", "stage2", "stage3a", "stage3a_xor", "stage3b", "stage4", "stage5", "stage6_fp8", "stage6_fp8_short", "stage6_split", "stage6_wgmma"}},
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
				if e.Provenance.Head.Variant != variant || len(e.Correctness.Cases) < c.cases || len(v.Comparisons) < c.shapes {
					t.Errorf("%s with %d cases, %d shapes timed; want %s with %d and %d", e.Provenance.Head.Variant, len(e.Correctness.Cases), len(v.Comparisons), variant, c.cases, c.shapes)
				}
			})
		}
	}
}

// PyTorch beside the variant that is best for the shape, in one run: every backend,
// replayed from a graph, is slower; the README's table says by how much.
func TestRecordedRivals(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile(filepath.Join("..", "kernels", "sdpa_fp8", "showcase.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ variant, shape string }{
		{"stage6_split", "small"}, {"stage6_split", "mission"}, {"stage6_split", "batch512"}, {"stage6_wgmma", "long"}, {"stage6_wgmma", "big"},
	} {
		e := readEvidence(t, filepath.Join("..", "kernels", "sdpa_fp8", "evidence", "all", c.variant+".json"))
		var row *Comparison
		for _, r := range Judge(parsePolicy(t, string(policy)), "showcase.yaml", e).Comparisons {
			if r.Shape == c.shape {
				row = &r
			}
		}
		if row == nil || row.Candidate == nil || row.Roofline == nil {
			t.Fatalf("%s was not timed on %s", c.variant, c.shape)
		}
		cells := fmt.Sprintf("| `%s` | **%s** |", c.variant, micros(row.Candidate.P50))
		for _, backend := range []string{"flash", "cudnn", "efficient", "math"} {
			i := slices.IndexFunc(e.Rivals, func(r Rival) bool { return r.Shape == c.shape && r.Name == "torch-"+backend+"-graph" })
			if i < 0 || e.Rivals[i].Failure != "" {
				t.Fatalf("%s was not timed on %s", backend, c.shape)
			}
			theirs := e.Rivals[i].Stats.P50
			if theirs <= row.Candidate.P50 {
				t.Errorf("%s takes %.2f µs on %s, %s %.2f", backend, theirs, c.shape, c.variant, row.Candidate.P50)
			}
			cells += " " + micros(theirs) + " |"
		}
		cells += fmt.Sprintf(" %.1f %% |\n", *row.Roofline*100)
		if !strings.Contains(string(readme), cells) {
			t.Errorf("the README has no row of %s with %s", c.shape, cells)
		}
	}
}

func micros(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
