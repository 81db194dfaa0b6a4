package tune

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", name, diff)
	}
}

// TestReports shows what a user reads at the end of a search.
func TestReports(t *testing.T) {
	faults := map[string]map[string]int{
		testBest:                     {"confirm": 1},
		"two,FAST=1,ROWS=2,STAGES=3": {"check": 1},
		"two,FAST=1,STAGES=8":        {"build": 1},
		"two,FAST=1":                 {"same": 1},
		"one,FAST=1":                 {"same": 1},
	}
	search := func(proposer string, budget float64, speed func(Candidate) float64) *Result {
		h := testHeader(proposer)
		h.Budget = budget
		lab := newFakeLab(testSpace(), speed)
		lab.faults = faults
		r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	golden(t, "winner.txt", search("grid", 0, testSpeed).Report(ReportOptions{}))
	golden(t, "winner.svg", search("grid", 0, testSpeed).SVG())
	golden(t, "all.txt", search("grid", 0, testSpeed).Report(ReportOptions{Width: 60, All: true}))
	golden(t, "budget.txt", search("local", 20, testSpeed).Report(ReportOptions{}))
	golden(t, "nothing.txt", search("local", 0, func(c Candidate) float64 { return -testSpeed(c) - 0.1 }).Report(ReportOptions{}))

	h := testHeader("grid")
	h.Exhaustive = true
	truth := MemoryLog(h)
	if _, err := (&Search{Log: truth, Proposer: Exhaustive(), Lab: newFakeLab(testSpace(), testSpeed)}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(truth.builds, "two,FAST=1,ROWS=4,STAGES=8")
	replay := NewReplay(truth)
	r, err := newSearch(t, MemoryLog(replay.Header("local", 3)), replay).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "replay.txt", r.Report(ReportOptions{}))
}

// TestEdit makes a candidate the default in manifests of every form, and leaves all other lines as
// they are.
func TestEdit(t *testing.T) {
	const problem = `version: 1
name: scale
mode: cpu
entry: scale
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.001}
shapes: {one: {N: 100}}   # one is enough
toggles:
  A: {values: [0, 1], default: 0, layer: structure}
  B: {values: [1, 2, 4], default: 2, layer: micro}
`
	for name, c := range map[string]struct {
		implementation string
		candidate      Candidate
	}{
		"no variants":     {"source: scale.c\n", Candidate{Variant: "default", Toggles: Settings{"A": 1, "B": 4}}},
		"flow":            {"variants:\n  one: {source: one.c, description: \"it's {one}\"}\n  two: {source: two.c}\ndefault_variant: one\n", Candidate{Variant: "one", Toggles: Settings{"A": 1}}},
		"another variant": {"variants:\n  one: {source: one.c}\n  two: {source: two.c}   # slower?\ndefault_variant: one\n", Candidate{Variant: "two", Toggles: Settings{"B": 4}}},
		"variant alone":   {"variants:\n  one: {source: one.c}\n  two: {source: two.c}\ndefault_variant: one\n", Candidate{Variant: "two"}},
		"flow toggles":    {"variants:\n  one:\n    source: one.c\n    toggles: {B: 4}   # best so far\n", Candidate{Variant: "one", Toggles: Settings{"A": 1, "B": 1}}},
		"block toggles":   {"variants:\n  one:\n    source: one.c\n    toggles:\n      B: 4   # best so far\n    description: it\n", Candidate{Variant: "one", Toggles: Settings{"A": 1, "B": 2}}},
		"block":           {"variants:\n  one:\n    source: one.c\n    description: it\n", Candidate{Variant: "one", Toggles: Settings{"B": 1}}},
		"no default":      {"variants: {one: {source: one.c}, two: {source: two.c}}\ndefault_variant: one", Candidate{Variant: "two", Toggles: Settings{"A": 1}}},
		"by hand":         {"variants:\n  one: {source: one.c,\n    description: it}\n", Candidate{Variant: "one", Toggles: Settings{"A": 1}}},
		"a source":        {"source: scale.c\n", Candidate{Variant: "default", Files: map[string]string{"scale.c": "int new;\n", "more.h": "int more;\n"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Diff("kernels/scale/kernel.yaml", []byte(problem+c.implementation), c.candidate, map[string]string{"scale.c": "int old;\n"}, func(file string) string { return "kernels/scale/" + file })
			golden(t, filepath.Join("edit-"+strings.ReplaceAll(name, " ", "-")+".diff"), got)
		})
	}
}
