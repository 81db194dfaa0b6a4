package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no golden file (go test ./gates/report -update writes it): %v", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-golden +got; -update accepts):\n%s", path, diff)
	}
}

// The speedup of all launches of a step stands first where the policy asks for it, and else as information.
func TestGoldenWeighted(t *testing.T) {
	for name, v := range weighted() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".md", Markdown(v, Options{}))
			golden(t, name+".txt", Terminal(v, TerminalOptions{Width: 120}))
		})
	}
}

// weighted is verdicts with the speedup of all launches of a step, by the name of their golden files.
func weighted() map[string]*gates.Verdict {
	all := map[string]*gates.Verdict{}
	for name, role := range map[string]gates.Role{"weighted-pass": gates.RoleTarget, "weighted-defer": gates.RoleTarget, "weighted-warm": gates.RoleTarget, "weighted-info": gates.RoleInfo} {
		v := passing()
		v.Weighted = &gates.WeightedSpeed{
			Role: role, Baseline: 580, Candidate: 544.1, Rounds: 6, Unmatched: 4, Tool: "torch",
			Speedup: gates.Estimate{Value: 0.066, Lower: ptr(0.061), Upper: ptr(0.0712)}, Saved: gates.Span{Value: 35.91, Lower: ptr(33.3), Upper: ptr(38.6)},
			Shapes: []gates.WeightedShape{{Shape: "small", Launches: 36, Baseline: 5, Candidate: 4, Share: 0.31}, {Shape: "mission", Launches: 1, Baseline: 400, Candidate: 400, Share: 0.69}},
			Step:   &gates.WholeStep{Micros: 2900, Share: 0.2, Speedup: gates.Estimate{Value: 0.0125, Lower: ptr(0.0116), Upper: ptr(0.0135)}, Most: 0.25},
		}
		if role == gates.RoleTarget {
			v.Weighted.Goal, v.Weighted.Status = "weighted speedup >= +3%", gates.Passed
			for i := range v.Comparisons {
				v.Comparisons[i].Role, v.Comparisons[i].Goal = gates.RoleGuard, "speedup >= -2% on all shapes"
			}
		}
		if name == "weighted-warm" {
			warm := *v.Weighted
			warm.Context, warm.Baseline, warm.Candidate = policy.Warm, 490, 478
			warm.Speedup, warm.Saved = gates.Estimate{Value: 0.0251, Lower: ptr(0.0211), Upper: ptr(0.03)}, gates.Span{Value: 12, Lower: ptr(10.3), Upper: ptr(14.6)}
			warm.Shapes = []gates.WeightedShape{{Shape: "small:warm", Launches: 36, Baseline: 2.5, Candidate: 2.2, Share: 0.18}, {Shape: "mission", Launches: 1, Baseline: 400, Candidate: 400, Share: 0.82}}
			warm.Step = &gates.WholeStep{Micros: 2900, Share: 0.17, Speedup: gates.Estimate{Value: 0.0042, Lower: ptr(0.0036), Upper: ptr(0.005)}, Most: 0.205}
			warm.Status, v.WeightedWarm, v.Outcome, v.Reason = gates.Failed, &warm, gates.Defer, gates.ReasonTooSlow
			v.ToPass = []string{"bring all launches of a warm step together to ≤\u00a0475.7\u00a0µs"}
		}
		if name == "weighted-defer" {
			v.Weighted.Goal, v.Weighted.Status, v.Outcome, v.Reason = "weighted speedup >= +10%", gates.Failed, gates.Defer, gates.ReasonTooSlow
			v.ToPass = []string{"bring all launches of a step together to ≤\u00a0527.27\u00a0µs"}
		}
		for i, g := range v.Gates {
			if g.Gate == gates.GatePerformance && v.Outcome == gates.Defer {
				v.Gates[i].Status = gates.Failed
			}
		}
		all[name] = v
	}
	return all
}

func TestGolden(t *testing.T) {
	for name, v := range verdicts() {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".md", Markdown(v, Options{}))
			golden(t, name+".txt", Terminal(v, TerminalOptions{Width: 120}))
		})
	}
	for name, opt := range map[string]TerminalOptions{
		"pass-80.txt":     {Width: 80},
		"pass-40.txt":     {Width: 40, Details: true},
		"pass-160.txt":    {Width: 160, Details: true},
		"pass-colour.txt": {Width: 120, Colour: true},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, Terminal(passing(), opt)) })
	}
	t.Run("short", func(t *testing.T) { golden(t, "pass-short.md", Markdown(passing(), Options{MaxBytes: 2600})) })
}
