package cpu

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// An arena takes hostile programs through the real gate. They are compiled here, not
// by the worker: what a compiler or a linker would refuse is let through, so that
// running them has to hold on its own.
type arena struct {
	manifest  *manifest.Manifest
	policy    *policy.Policy
	dir       string
	version   string // of the compiler
	baseline  *executable
	reference *executable
}

const (
	correctOnly = `version: 1
rules: [{name: default}]
gates:
  correctness: {shapes: [mission], seeds: [0], distributions: [normal, uniform], secret_cases: 1, norm_error: "<= 0.1%", determinism: true}
`
	andFaster = correctOnly + `  performance:
    target: {shapes: [mission], speedup: ">= +50%"}
    rounds: {min: 6, max: 6}
    pairs: 4
    control: 50%
    solo_shift: 100%
`
)

// newArena has a policy that ends with performance, or with correctness.
func newArena(t *testing.T, policy string) *arena {
	t.Helper()
	return newArenaOf(t, policy, 1000, work+"void scale(const float *x, float *y, int32_t N) { work(x, y, N); }\n", reference)
}

// newArenaOf has a mission of its own size, with its baseline and reference.
func newArenaOf(t *testing.T, policyYAML string, size int, baseline, reference string) *arena {
	t.Helper()
	m, _ := languages(t)
	m.Shapes[1].Dims[0].Value = size
	p, err := policy.Parse("arena.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	cc, err := toolchain.FindCC(t.Context(), func(string) string { return "" }, false)
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{manifest: m, policy: p, dir: t.TempDir(), version: "bare " + cc.Version}
	if err := os.Chmod(a.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sample, err := tensor.NewProblem(m, m.Shapes[0], nil, "zero", 0)
	if err != nil {
		t.Fatal(err)
	}
	a.baseline = a.compile(t, "baseline", stub(m.CPrototype(m.Entry), m.Entry, sample.Args, 1), baseline)
	a.reference = a.compile(t, "reference", stub(m.ReferencePrototype(m.Reference.Entry), m.Reference.Entry, sample.ReferenceArgs(false), 1), reference)
	return a
}

// bare is the system's compiler, in no sandbox.
type bare struct{}

func (bare) Run(ctx context.Context, call toolchain.Compile) (string, error) {
	log, err := exec.CommandContext(ctx, "cc", call.Args...).CombinedOutput()
	return string(log), err
}

// compile makes a program of a kernel and its main.
func (a *arena) compile(t *testing.T, name, main, kernel string) *executable {
	t.Helper()
	dir := filepath.Join(a.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-O1", "-w", "-o", filepath.Join(dir, "kernel"), filepath.Join(dir, "main.c"), filepath.Join(dir, "kernel.c"), "-lm"}
	for file, text := range map[string]string{"main.c": main, "kernel.c": kernel} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if log, err := keep(t, bare{}, a.version).Run(t.Context(), toolchain.Compile{Dir: dir, Args: args, Out: dir}); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return &executable{path: filepath.Join(dir, "kernel"), manifest: a.manifest}
}

// prebuilt is a worker to whom nothing is left to build.
type prebuilt struct{ *Worker }

func (prebuilt) Build(_ context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	return gates.Build{Variant: side.Variant, OK: true, Code: string(role)}, nil
}

// gate takes a candidate's source through the gates, and its evidence through a
// file.
func (a *arena) gate(t *testing.T, name, source string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	w := a.worker(t, name, source)
	e, err := gather.Gather(t.Context(), w.job, prebuilt{w}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(a.policy, "arena.yaml", e)
	sameFromFile(t, a.policy, e, v)
	return e, v
}

// worker has a candidate's program, the baseline's and the reference's.
func (a *arena) worker(t *testing.T, name, source string) *Worker {
	t.Helper()
	sample, err := tensor.NewProblem(a.manifest, a.manifest.Shapes[0], nil, "zero", 0)
	if err != nil {
		t.Fatal(err)
	}
	exe := a.compile(t, name, stub(a.manifest.CPrototype(a.manifest.Entry), a.manifest.Entry, sample.Args, 1), source)
	side := runners.Side{Dir: a.dir, Variant: a.manifest.DefaultVariant}
	job := runners.Job{Manifest: a.manifest, Policy: a.policy, Trusted: a.dir, Baseline: &side, Candidate: side}
	w := newWorker(t, job, Config{Scratch: a.dir, LaunchTimeout: 2 * time.Second, Getenv: func(string) string { return "" }})
	w.sides[runners.Baseline], w.sides[runners.Candidate], w.ref = a.baseline, exe, a.reference
	return w
}

// decide gates a kernel again while the machine is too busy for a decision. An undecided
// verdict is never a PASS, so repeating it gives a kernel no second chance that counts.
func (a *arena) decide(t *testing.T, name, source string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	e, v := a.gate(t, name, source)
	for again := 0; again < 4 && v.Reason == gates.ReasonInconclusive; again++ {
		t.Logf("repeated: %s", v.Summary)
		e, v = a.gate(t, fmt.Sprintf("%s-%d", name, again), source)
	}
	return e, v
}

// sameFromFile asks that gathered evidence can be read again, and is judged as it was.
func sameFromFile(t *testing.T, p *policy.Policy, e *gates.Evidence, v *gates.Verdict) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := gates.ParseEvidence("evidence.json", data)
	if err != nil {
		t.Fatalf("what was gathered cannot be read: %v", err)
	}
	if again := gates.Judge(p, "arena.yaml", back); !reflect.DeepEqual(again.Gates, v.Gates) || again.Summary != v.Summary {
		t.Errorf("from a file the verdict is %q, it was %q", again.Summary, v.Summary)
	}
}
