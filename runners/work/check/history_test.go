package check

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/usage"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestHistoryIsInStep checks that the history that is committed with a kernel matches its evidence.
func TestHistoryIsInStep(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "kernels", "sdpa_fp8")
	got, err := History(folder, "h200")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "HISTORY.md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s is not what the evidence says (%v): run kernelgate history kernels/sdpa_fp8, or this test with -update", file, err)
	}
	deferred, lessons := strings.Count(got, " over `"), strings.Count(got, "Lesson: ")
	if deferred == 0 || lessons != deferred {
		t.Errorf("%d of %d variants that did not pay have a lesson", lessons, deferred)
	}
}

// TestTerminalHistory checks that a terminal gets columns that fit it, and no Markdown.
func TestTerminalHistory(t *testing.T) {
	for _, width := range []int{80, 120} {
		got, err := TerminalHistory(filepath.Join("..", "..", "..", "kernels", "sdpa_fp8"), "h200", report.TerminalOptions{Width: width})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", fmt.Sprintf("history-%d.txt", width))
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%d columns are not %s (-update writes it):\n%s", width, file, diff)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if n := utf8.RuneCountInString(line); n > width || strings.ContainsAny(line, "|`") {
				t.Errorf("%d columns in %q", n, line)
			}
		}
	}
}

func TestHistoryRefuses(t *testing.T) {
	folder := t.TempDir()
	refused := func(want string) {
		t.Helper()
		_, err := History(folder, "h200")
		if bad := (usage.Error{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	refused("has no evidence/*.json")

	evidence := filepath.Join("..", "..", "..", "kernels", "sdpa_fp8", "evidence", "spills.json")
	data, err := os.ReadFile(evidence)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "evidence"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "evidence", "spills.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := History(folder, "h200"); err != nil {
		t.Errorf("evidence without a manifest: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kernel.yaml"), []byte("version: 1\nnaem: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("kernel.yaml:2:1: naem: unknown field")
}

// A kernel without stored evidence has the history of its runs.
func TestHistoryOfResults(t *testing.T) {
	top := t.TempDir()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "kernels", "sdpa_fp8", "evidence", "stage1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		".git/HEAD": nil, "kernels/other/notes.txt": nil, "kernels/sdpa_fp8/notes.txt": nil, "results/20260102T030405Z/evidence.json": data,
	} {
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := History(filepath.Join(top, "kernels", "sdpa_fp8"), "h200"); err != nil || !strings.Contains(text, "stage1") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := History(filepath.Join(top, "kernels", "other"), "h200"); err == nil || !strings.Contains(err.Error(), "the folder results has no run of other") {
		t.Error(err)
	}
}
