package report

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestHistory(t *testing.T) {
	step := func(before, after string, speedup float64, outcome gates.Outcome, reason gates.Reason) *gates.Verdict {
		return &gates.Verdict{
			Outcome: outcome, Reason: reason, Summary: "Too slow: nothing gained", Device: gates.Device{Name: "L4"},
			Provenance:  gates.Provenance{Base: gates.Commit{Variant: before}, Head: gates.Commit{Variant: after}},
			Comparisons: []gates.Comparison{{Shape: "mission", Role: "target", Speedup: gates.Estimate{Value: speedup}}},
		}
	}
	got := History("k", []*gates.Verdict{
		step("stage1", "stage2", 1, gates.Pass, ""),
		step("stage2", "stage3a", 0, gates.Defer, gates.ReasonTooSlow),
		step("stage0", "stage1", 0.5, gates.Pass, ""),
		{Outcome: gates.Pass, Device: gates.Device{Name: "L4"}}, // compares no variants
	}, map[string]string{"stage1": "never shown: it passed", "stage3a": "memory was *not* scarce"})
	for _, want := range []string{"| `stage0` | – | – | – | 1.00×", "1.50×", "3.00×", "What did not work", "`stage3a` over `stage2`: Too slow: nothing gained. Lesson: memory was \\*not\\* scarce\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history does not have %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "never shown") {
		t.Errorf("a lesson of a variant that passed:\n%s", got)
	}
	if strings.Index(got, "`stage1` |") > strings.Index(got, "`stage2` |") {
		t.Errorf("the steps are out of order:\n%s", got)
	}
	if got := History("k", nil, nil); !strings.Contains(got, "no evidence that compares variants") {
		t.Errorf("got %q", got)
	}
}

// A kernel that is developed commit by commit has a history too: in the order of its steps, without work trees that nobody can look up.
func TestHistoryOfCommits(t *testing.T) {
	at := func(base, head string, minute int, dirty bool) *gates.Verdict {
		return &gates.Verdict{Outcome: gates.Pass, Device: gates.Device{Name: "GPU"}, Provenance: gates.Provenance{
			Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC), Base: gates.Commit{SHA: strings.Repeat(base, 40)}, Head: gates.Commit{SHA: strings.Repeat(head, 40), Dirty: dirty},
		}}
	}
	text := History("k", []*gates.Verdict{at("b", "a", 2, false), at("c", "b", 1, false), at("a", "d", 3, true)}, nil)
	first, second := strings.Index(text, "| `bbbbbbbbbbbb` | `cccccccccccc` |"), strings.Index(text, "| `aaaaaaaaaaaa` | `bbbbbbbbbbbb` |")
	if first < 0 || second < first || strings.Contains(text, "dddd") {
		t.Errorf("the history is\n%s", text)
	}
}

// A goal for all launches of a step is the target of its history.
func TestHistoryOfSteps(t *testing.T) {
	v := &gates.Verdict{
		Outcome: gates.Pass, Device: gates.Device{Name: "L4"}, Provenance: gates.Provenance{Base: gates.Commit{Variant: "stage0"}, Head: gates.Commit{Variant: "stage1"}},
		Comparisons: []gates.Comparison{{Shape: "mission", Role: gates.RoleGuard, Speedup: gates.Estimate{Value: 0.01}}},
		Weighted:    &gates.WeightedSpeed{Role: gates.RoleTarget, Baseline: 60, Candidate: 50, Speedup: gates.Estimate{Value: 0.2}},
	}
	got := History("k", []*gates.Verdict{v}, nil)
	for _, want := range []string{"| all launches of a step |", "| 50.0\u00a0µs |", "+20.0\u00a0%", "1.20×"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history does not have %q:\n%s", want, got)
		}
	}
	v.WeightedWarm = &gates.WeightedSpeed{Context: policy.Warm, Role: gates.RoleTarget, Baseline: 30, Candidate: 29, Speedup: gates.Estimate{Value: 0.034}}
	if got := History("k", []*gates.Verdict{v}, nil); !strings.Contains(got, "+3.40\u00a0%") || strings.Contains(got, "+20") || !strings.Contains(got, "1.20×") || !strings.Contains(got, "of two sums, the one of cold launches") {
		t.Errorf("of two sums, the speedup is that of the smaller, and the factor the cold one:\n%s", got)
	}
	v.WeightedWarm = nil
	v.Weighted.Role = gates.RoleInfo
	if got := History("k", []*gates.Verdict{v}, nil); strings.Contains(got, "+20") {
		t.Errorf("a figure for information is a target:\n%s", got)
	}
}
