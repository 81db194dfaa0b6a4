package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
)

// The history that is committed beside a kernel is what its evidence says.
func TestHistoryIsInStep(t *testing.T) {
	folder := filepath.Join("..", "..", "kernels", "sdpa_fp8")
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policies.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "evidence", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no evidence", err)
	}
	var verdicts []*gates.Verdict
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e, err := gates.ParseEvidence(file, data)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, gates.Judge(p, "h200.yaml", e))
	}
	got := History("sdpa_fp8", verdicts)
	file := filepath.Join(folder, "HISTORY.md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what the evidence says (%v): run kernelgate history %s, or this test with -update", file, err, "kernels/sdpa_fp8")
	}
}

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
	})
	for _, want := range []string{"| `stage0` | – | – | – | 1.00×", "1.50×", "3.00×", "What did not work", "`stage3a` over `stage2`: Too slow: nothing gained"} {
		if !strings.Contains(got, want) {
			t.Errorf("the history does not have %q:\n%s", want, got)
		}
	}
	if strings.Index(got, "`stage1` |") > strings.Index(got, "`stage2` |") {
		t.Errorf("the steps are out of order:\n%s", got)
	}
	if got := History("k", nil); !strings.Contains(got, "no evidence that compares variants") {
		t.Errorf("got %q", got)
	}
}
