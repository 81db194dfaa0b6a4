package hindsight_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
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
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept): %s", path, diff)
	}
}

// edited is the shipped policy for the H200 with some edits.
func edited(t *testing.T, edits ...string) hindsight.Policy {
	t.Helper()
	text := textOf(t, "h200.yaml")
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("h200.yaml has no %q", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return parse(t, "new.yaml", text)
}

// The table names what would be different, and why.
func TestText(t *testing.T) {
	names := []string{"stage1", "stage2", "stage3a", "stage4", "broken", "spills"}
	old := shipped(t, "h200")
	for file, new := range map[string]hindsight.Policy{
		"stricter.txt": edited(t, `speedup: ">= +10%"`, `speedup: ">= +28%"`),
		"milder.txt":   edited(t, `speedup: ">= +10%"`, `speedup: ">= -2%"`),
		"rounds.txt":   edited(t, "rounds: {min: 6, max: 20}", "rounds: {min: 8, max: 30}", "interims: [6, 12, 20]", "interims: [8, 30]"),
		"shapes.txt":   edited(t, "    seeds: [0, 1, 2]\n", "    seeds: [0, 1, 2, 3]\n"),
		"shadow.txt":   edited(t, "  - name: default\n", "  - name: default\n    enforce: shadow\n", "labels: [refactoring]", "branches: [refactoring]"),
		"same.txt":     edited(t),
	} {
		t.Run(file, func(t *testing.T) {
			var rows []hindsight.Row
			for _, name := range names {
				rows = append(rows, hindsight.Judge(old, new, name, readEvidence(t, filepath.Join(root, "kernels", "sdpa_fp8", "evidence", name+".json"))))
			}
			golden(t, file, hindsight.Text(rows))
			for line := range strings.Lines(hindsight.Text(rows)) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
			if s := hindsight.Summarize(rows); s.Runs != len(names) || s.Flips+s.Lacking > len(names) || (file == "same.txt") != (s.Flips+s.Lacking == 0) {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestJudgementsAlike(t *testing.T) {
	slow := hindsight.Judgement{Outcome: gates.Defer, Reason: gates.ReasonTooSlow}
	shadow := slow
	shadow.Enforce = "shadow"
	pass := hindsight.Judgement{Outcome: gates.Pass}
	passShadow := hindsight.Judgement{Outcome: gates.Pass, Enforce: "shadow", Rule: "other", Summary: "Proven"}
	if slow.Same(shadow) || !pass.Same(passShadow) || slow.Same(pass) || !slow.Same(slow) {
		t.Error("alike is not what an author would call so")
	}
	if shadow.String() != "shadow: DEFER (too-slow)" || passShadow.String() != "PASS" {
		t.Errorf("%s, %s", shadow, passShadow)
	}
	if got := hindsight.Text(nil); got != "0 runs judged: 0 verdicts would be different, 0 runs would need more evidence.\n" {
		t.Error(got)
	}
}
