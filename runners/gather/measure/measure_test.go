package measure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

type silent struct{}

func (silent) Report(runners.Event) {}

const policyText = `version: 1
gates:
  correctness: {shapes: [small], seeds: [0], norm_error: "<= 1%"}
  performance:
    target: {shapes: [small], speedup: ">= +10%"}
    rounds: {min: 6, max: 8}
    interims: [6, 8]
    pairs: 4
    control: 50%
    solo_shift: 900%
rules:
  - name: default
`

const scaleManifest = `version: 1
name: scale
mode: cpu
entry: scale
flags: [-O1]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.001}
shapes: {small: {N: 500}, mission: {N: 1000}}
default_variant: slow
variants: {slow: {source: slow.c}, fast: {source: fast.c}}
`

// scale returns a source that does the same work several times.
func scale(times string) string {
	return "#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { for (volatile int again = 0; again < " + times + "; again++) for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
}

// variants returns a job that compares two variants of a CPU kernel.
func variants(t *testing.T) (runners.Job, Config) {
	t.Helper()
	dir := write(t, t.TempDir(), map[string]string{
		"slow.c": scale("800"), "fast.c": scale("400"),
		"reference.c": "#include <stdint.h>\nvoid reference(const double *x, double *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n",
	})
	m, err := manifest.Parse("kernel.yaml", []byte(scaleManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	job := runners.Job{
		Manifest: m, ManifestText: scaleManifest, Policy: p, Trusted: dir,
		Baseline: &runners.Side{Dir: dir, Variant: "slow"}, Candidate: runners.Side{Dir: dir, Variant: "fast"},
	}
	return job, Config{Seed: 1, Getenv: func(string) string { return "" }}
}

// A memory knows evidence about one pair of machine codes.
type memory struct{ e *gates.Evidence }

func (m memory) Earlier(_ context.Context, c runners.Code) (runners.Earlier, error) {
	if known, ok := runners.CodeOf(m.e); !ok || known != c {
		return runners.Earlier{}, nil
	}
	return runners.Earlier{Evidence: m.e, Again: true}, nil
}

func (m memory) Begin(context.Context, runners.Code) (runners.Attempt, error) {
	return runners.Attempt{Number: 2, CodeNumber: 1}, nil
}

// TestGoesOnWithStoredEvidence checks that a second process with only the stored evidence adds an
// attempt if both sides build to the same machine code, whatever their sources say.
func TestGoesOnWithStoredEvidence(t *testing.T) {
	job, config := variants(t)
	first, err := config.Measure(t.Context(), job, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	e := first.Evidence
	if e.Fault != "" || e.Performance == nil || len(e.Performance.Rounds) < 3 || !strings.Contains(first.BuildLog, "fast.c") {
		t.Fatalf("fault %q; build log:\n%s", e.Fault, first.BuildLog)
	}
	source := filepath.Join(job.Candidate.Dir, "fast.c")
	add := func(text string) {
		t.Helper()
		before, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(source, append(before, text...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	add("\n/* A remark. */\n")
	config.Seed = 2
	job.Record, job.Rounds = memory{e}, 2
	second, err := config.Measure(t.Context(), job, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	was, is := e.Performance.Rounds, second.Evidence.Performance.Rounds
	if len(is) != len(was)+2 || is[len(is)-1].Attempt != 2 || is[len(was)-1].Attempt != 1 {
		t.Fatalf("%d rounds became %d, the last of attempt %d", len(was), len(is), is[len(is)-1].Attempt)
	}
	if is[len(was)].Seed == was[0].Seed {
		t.Error("the second attempt repeats the first one's order")
	}
	if second.Evidence.Correctness != e.Correctness {
		t.Error("correctness was run again")
	}
	if v := gates.Judge(job.Policy, "test.yaml", second.Evidence); v.Outcome == gates.Error {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}

	add("\nint more(int x) { return x * 3; }\n")
	// Whether the evidence is recalled is known before anything would be timed.
	for i := range job.Policy.Rules {
		job.Policy.Rules[i].Gates.Performance = nil
	}
	third, err := config.Measure(t.Context(), job, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	if other, _ := runners.CodeOf(third.Evidence); third.Evidence.Fault != "" || third.Evidence.Correctness == e.Correctness || other.Candidate == e.Candidate.Code {
		t.Errorf("with an edited source: fault %q, code %.12s after %.12s", third.Evidence.Fault, other.Candidate, e.Candidate.Code)
	}
}

func TestLeftOut(t *testing.T) {
	for _, c := range []struct {
		runner string
		mode   manifest.Mode
		says   string
	}{
		{"", manifest.ModeCUDA, ""},
		{Auto, manifest.ModeCPU, ""},
		{Auto, manifest.ModeCommand, ""},
		{CPU, manifest.ModeCPU, ""},
		{CUDA, manifest.ModeCUDA, ""},
		{CPU, manifest.ModeCUDA, "it is a cuda kernel, and only a GPU can measure it (leave --runner out"},
		{CUDA, manifest.ModeCPU, "it is a cpu kernel, not one for the cuda runner"},
		{CPU, manifest.ModeCommand, "its own command measures it, not the cpu runner"},
	} {
		got := LeftOut(c.runner, &manifest.Manifest{Mode: c.mode})
		if (got == "") != (c.says == "") || !strings.HasPrefix(got, c.says) {
			t.Errorf("--runner %q, mode %s: %q, want %q", c.runner, c.mode, got, c.says)
		}
	}
}

// TestRivals checks that rivals are timed after the candidate, and that a rival that fails is
// reported and is no fault of the run.
func TestRivals(t *testing.T) {
	job, config := variants(t)
	for name, script := range map[string]string{
		"good.sh": `echo '{"shape":"small","us":[40,42,44]}'`,
		"bad.sh":  "echo 'no module named torch' >&2; exit 1",
	} {
		if err := os.WriteFile(filepath.Join(job.Trusted, name), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	job.Manifest.Rivals = []manifest.Rival{
		{Name: "good", Command: []string{"/bin/sh", "good.sh"}}, {Name: "bad", Command: []string{"/bin/sh", "bad.sh"}},
	}
	config.Getenv = os.Getenv
	e := &gates.Evidence{Shapes: []gates.Shape{{Name: "small"}, {Name: "mission"}}}
	if got, err := rivals(t.Context(), job, e, config.command(t.TempDir()), silent{}); err != nil || got != nil {
		t.Errorf("nothing was timed, and yet there are rivals: %v, %v", got, err)
	}
	e.Performance = &gates.Performance{Rounds: []gates.Round{{Attempt: 1}}}
	got, err := rivals(t.Context(), job, e, config.command(t.TempDir()), silent{})
	if err != nil {
		t.Fatal(err)
	}
	want := []gates.Rival{
		{Name: "good", Shape: "small", Stats: stats.Describe([]float64{40, 42, 44, 40, 42, 44})},
		{Name: "bad", Failure: "the bench command ended with status 1: no module named torch (run its command by hand; KERNELGATE_READ names further folders that it may read)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e.Fault != "" {
		t.Errorf("fault %q", e.Fault)
	}
}

// TestBackends checks that there is a backend for every mode, and a row that says what it can do.
func TestBackends(t *testing.T) {
	for mode := range backends {
		if runners.ModeOf(&manifest.Manifest{Mode: mode}).Clock == "" {
			t.Errorf("runners has no row for %s", mode)
		}
	}
	for _, mode := range []manifest.Mode{manifest.ModeCPU, manifest.ModeCUDA, manifest.ModeCommand} {
		if backends[mode] == nil {
			t.Errorf("nothing opens a backend for %s", mode)
		}
	}
}
