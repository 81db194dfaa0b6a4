package tune

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

const scriptedPolicy = `version: 1
gates:
  correctness: {seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  sanitize: {shapes: [mission], secret_cases: 0}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}
rules: [{name: default}]
`

// scriptedLab is a real lab whose backend reads from each variant's source what there is to see.
func scriptedLab(t *testing.T, scripts map[string]string) (*BenchLab, Header) {
	t.Helper()
	text := strings.Replace(scripted.Manifest, "source: scale.c\n", "", 1) + "shapes: {mission: {N: 1000}}\nlimits: {N: 1..100000}\ndefault_variant: a\nvariants:\n"
	dir := t.TempDir()
	for name, script := range scripts {
		text += "  " + name + ": {source: " + name + ".c}\n"
		if err := os.WriteFile(filepath.Join(dir, name+".c"), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(scriptedPolicy))
	if err != nil {
		t.Fatal(err)
	}
	job := runners.Job{Manifest: m, Policy: p, PolicyFile: "policy.yaml", Trusted: dir, Baseline: &runners.Side{Dir: dir, Variant: "a"}, Candidate: runners.Side{Dir: dir, Variant: "a"}}
	bench, err := arm.NewBenchWith(scripted.Runner{}.Open, job, nil)
	if err != nil {
		t.Fatal(err)
	}
	space, err := NewSpace(m, "a", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(space.Variants)
	gate := func(ctx context.Context, _ string, side runners.Side, a Attempt) (Confirmed, error) {
		judged := bench.Job(side)
		judged.Record = counted{a}
		out, err := scripted.Runner{}.Measure(ctx, judged, "", muted{})
		if err != nil {
			return Confirmed{}, err
		}
		v := gates.Judge(judged.Policy, "policy.yaml", out.Evidence)
		return Confirmed{Outcome: v.Outcome, Reason: v.Reason, Summary: v.Summary}, nil
	}
	lab := NewBenchLab(bench, nil, space, job, "scripted none", filepath.Join(t.TempDir(), "arms"), gate)
	t.Cleanup(lab.Close)
	return lab, Header{Version: logVersion, Space: space, Shapes: bench.Shapes(), Device: "scripted none", Proposer: "grid", Seed: 3, Candidates: 50, Epsilon: 0.01, MaxRounds: 20}
}

// listed proposes fixed candidates, once.
type listed struct{ all []Candidate }

func (l *listed) Propose(context.Context, State) ([]Candidate, error) {
	all := l.all
	l.all = nil
	return all, nil
}

// TestBenchLab runs a search on arms whose gates are the real ones: candidates that are fast and
// broken, wrong or racing do not win.
func TestBenchLab(t *testing.T) {
	lab, h := scriptedLab(t, map[string]string{
		"a": "speed 1", "b": "speed 1.3", "c": "speed 2 WRONG", "d": "speed 2 BROKEN", "e": "speed 1.5 RACE", "f": "speed 1.2", "g": "speed 1.3", "h": "speed 1",
	})
	r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Winner != "b" {
		t.Errorf("%q won: %s", r.Winner, r.Report(ReportOptions{}))
	}
	for name, want := range map[string]struct {
		status Status
		gate   gates.Gate
	}{"c": {Failed, gates.GateCorrectness}, "d": {Failed, gates.GateBuild}, "e": {Failed, gates.GateSanitize}, "f": {Slower, ""}, "g": {Duplicate, ""}, "h": {Duplicate, ""}} {
		if got := r.Find(name); got.Status != want.status || got.Gate != want.gate {
			t.Errorf("%s is %q (%s): %s; want %q (%s)", name, got.Status, got.Gate, got.Why, want.status, want.gate)
		}
	}
	if d := r.Find("d"); len(d.Details) == 0 || !strings.Contains(strings.Join(d.Details, "\n"), "it is broken") {
		t.Errorf("the compiler's output of d is %q", d.Details)
	}
}

// TestBenchLabFiles checks that a candidate may bring a source, which goes through the same gates,
// and changes no file of the others.
func TestBenchLabFiles(t *testing.T) {
	lab, h := scriptedLab(t, map[string]string{"a": "speed 1", "b": "speed 1.1"})
	bring := func(text string) Candidate {
		return Candidate{Variant: "b", Files: map[string]string{"b.c": text, "extra.h": "x"}}
	}
	right, wrong := bring("speed 1.8"), bring("speed 4 WRONG")
	r, err := (&Search{Log: MemoryLog(h), Proposer: &listed{[]Candidate{{Variant: "b"}, right, wrong}}, Lab: lab}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Winner != h.Space.ID(right) || r.Find(h.Space.ID(wrong)).Status != Failed || r.Find("b").Status != Slower {
		t.Errorf("%q won: %s", r.Winner, r.Report(ReportOptions{}))
	}
	if text, err := os.ReadFile(filepath.Join(lab.side.Dir, "b.c")); err != nil || string(text) != "speed 1.1" {
		t.Errorf("the kernel's own source is %q (%v)", text, err)
	}
	for _, file := range []string{"reference.c", "kernel.yaml", "../a.c", "/etc/passwd", "", "a.txt"} {
		c := Candidate{Variant: "b", Files: map[string]string{file: "x"}}
		if _, err := lab.Build(t.Context(), "x", c); err == nil {
			t.Errorf("a candidate may bring %q", file)
		}
	}
}

// TestMayBring checks which files a candidate may bring if the sources are in a different folder.
func TestMayBring(t *testing.T) {
	m := &manifest.Manifest{Root: "csrc"}
	for file, want := range map[string]bool{"a.cu": true, "sub/a.cu": true, "../a.cu": false, "/a.cu": false, "a/../b.cu": false, "": false, "kernel.yaml": false, "x/kernel.yaml": false} {
		if got := MayBring(m, file); got != want {
			t.Errorf("%q: %v, want %v", file, got, want)
		}
	}
	if got := SourcePath(m, "a.cu"); got != manifest.RepositoryFolder+"/csrc/a.cu" {
		t.Errorf("a.cu is at %s", got)
	}
}
