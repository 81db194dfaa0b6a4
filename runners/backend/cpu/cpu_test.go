package cpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/gather"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

type silent struct{}

func (silent) Report(runners.Event) {}

const (
	reference = `#include <stdint.h>
void reference(const double *x, double *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }
`
	// Slow on purpose: the baseline does its work sixteen times.
	baseline = `#include <stdint.h>
void scale(const float *x, float *y, int32_t N)
{
    for (volatile int again = 0; again < 16; again++)
        for (int i = 0; i < N; i++)
            y[i] = 2 * x[i];
}
`
	policyText = `version: 1
gates:
  ptxas: {stack: "<= 64KiB"}
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 2, norm_error: "<= 0.1%", determinism: true}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    guard: {shapes: all, speedup: ">= -50%"}
    rounds: {min: 6, max: 40}
    interims: [6, 9, 12, 20, 40]
    pairs: 6
    control: 40%
    solo_shift: 100%
rules:
  - name: default
`
)

// languages reads the test's manifest and policy.
func languages(t testing.TB) (*manifest.Manifest, *policy.Policy) {
	t.Helper()
	manifestYAML, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", manifestYAML)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyText))
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

// newTestWorker makes a worker for a candidate's source against a baseline's.
func newTestWorker(t testing.TB, m *manifest.Manifest, p *policy.Policy, base, candidate string, timeout time.Duration) *Worker {
	t.Helper()
	side := func(source string) runners.Side {
		v, err := m.Variant(m.DefaultVariant)
		if err != nil {
			t.Fatal(err)
		}
		return runners.Side{Dir: sourceFolder(t, map[string]string{v.Source: source, "reference.c": reference}), Variant: m.DefaultVariant}
	}
	b := side(base)
	job := runners.Job{Manifest: m, Policy: p, Trusted: b.Dir, Baseline: &b, Candidate: side(candidate)}
	return newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: timeout, Seed: 1, Getenv: func(string) string { return "" }})
}

// gate takes a candidate's source through all gates against the slow baseline.
func gate(t *testing.T, candidate string, timeout time.Duration) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	m, p := languages(t)
	w := newTestWorker(t, m, p, baseline, candidate, timeout)
	e, err := gather.Gather(t.Context(), w.job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "test.yaml", e)
}

// built is a worker whose candidate is compiled.
func built(t testing.TB, candidate string) *Worker {
	t.Helper()
	m, p := languages(t)
	w := newTestWorker(t, m, p, baseline, candidate, time.Minute)
	if b, err := w.Build(t.Context(), runners.Candidate, w.job.Candidate); err != nil || !b.OK {
		t.Fatal(b.Error, err)
	}
	return w
}

const include = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n#include <unistd.h>\n#include <signal.h>\n#include <time.h>\n"

// Everything that a kernel can do to itself is evidence, and each has a message
// of its own.
func TestBadKernels(t *testing.T) {
	for _, c := range []struct {
		name, body string
		outcome    gates.Outcome
		reason     gates.Reason
		says       string
	}{
		{"does not compile", "y[0] = nothing;", gates.Defer, gates.ReasonBuild,
			"The candidate does not build: scale.c:10: 'nothing' undeclared (first use in this function)"},
		{"segmentation fault", "*(volatile int *)8 = 1;", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the kernel crashed: segmentation fault (SIGSEGV)"},
		{"abort", "abort();", gates.Defer, gates.ReasonCorrectness, "the kernel crashed: aborted (SIGABRT)"},
		{"hangs", "for (volatile int i = 0;; i++) ;", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the kernel did not return within 1s and was killed"},
		{"writes its inputs", "for (int i = 0; i < N; i++) { y[i] = 2 * x[i]; ((float *)x)[i] = 0; }", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the kernel wrote to its input x"},
		{"writes beyond its output", "for (int i = 0; i <= N; i++) y[i] = i < N ? 2 * x[i] : 0;", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the kernel wrote outside its arguments"},
		{"writes nothing", "(void)x; (void)y; (void)N;", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: 64 of 64 elements were never written"},
		{"leaves out the last element", "for (int i = 0; i < N - 1; i++) y[i] = 2 * x[i];", gates.Defer, gates.ReasonCorrectness,
			"1 of 64 elements were never written"},
		{"returns NaN", "for (int i = 0; i < N; i++) y[i] = NAN;", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: 64 of 64 elements are NaN"},
		{"writes zeros", "for (int i = 0; i < N; i++) y[i] = 0;", gates.Defer, gates.ReasonCorrectness, "norm error 100% (asked <= 0.1%)"},
		{"ends the process", "exit(0);", gates.Defer, gates.ReasonCorrectness,
			"small, seed 0, normal inputs: the kernel ended its process (exit status 0) instead of returning"},
		{"kills itself", "kill(getpid(), SIGTERM);", gates.Defer, gates.ReasonCorrectness, "the kernel called kill, which the sandbox refuses"},
		{"right for the public shapes alone", "if (N == 64 || N == 1000) for (int i = 0; i < N; i++) y[i] = 2 * x[i];", gates.Defer, gates.ReasonCorrectness,
			"secret shape (N="},
		{"computes once, then skips", "static float kept[100000]; static int n; if (n != N) { for (int i = 0; i < N; i++) kept[i] = 2 * x[i]; n = N; } memcpy(y, kept, sizeof(float) * (size_t)N);",
			gates.Defer, gates.ReasonCorrectness, "small, seed 0, normal inputs: the output depends on what the kernel kept of an earlier launch"},
		{"not the same after another launch", "static int n; for (int i = 0; i < N; i++) y[i] = 2 * x[i] * (1 + 1e-6f * (float)(n & 1)); n++;", gates.Defer, gates.ReasonCorrectness,
			"the output depends on what the kernel kept of an earlier launch"},
		{"not the same twice, whatever came before", "struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); for (int i = 0; i < N; i++) y[i] = 2 * x[i] * (1 + 1e-7f * (float)(now.tv_nsec % 1000));",
			gates.Defer, gates.ReasonCorrectness, "two launches on the same input gave different bits"},
		{"skips every second launch once it is warm", "static int n; if (n++ > 12 && n % 2) return; for (int i = 0; i < N; i++) y[i] = 2 * x[i];", gates.Defer, gates.ReasonCorrectness,
			"elements were never written"},
		{"the same machine code", "", gates.Defer, gates.ReasonTooSlow, "Too slow: the machine code is the same as the baseline's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := include + "\nvoid scale(const float *x, float *y, int32_t N)\n{ " + c.body + "\n}\n"
			if c.name == "the same machine code" {
				source = "/* another comment */\n\n" + baseline
			}
			timeout := time.Minute
			if c.name == "hangs" {
				timeout = time.Second
			}
			_, v := gate(t, source, timeout)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got  %s (%s): %q\nwant %s (%s): …%q…", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says)
			}
		})
	}
}

// A kernel that knows the inputs of seed 0, and is right on those alone.
func TestRightForOneSeedAlone(t *testing.T) {
	m, _ := languages(t)
	known := "0"
	for _, shape := range m.Shapes {
		p, err := tensor.NewProblem(m, shape, nil, distribution.Normal, 0)
		if err != nil {
			t.Fatal(err)
		}
		known += fmt.Sprintf(" || x[0] == %.9gf", p.Args[0].Real[0])
	}
	_, v := gate(t, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = ("+known+") ? 2 * x[i] : 0; }", time.Minute)
	if v.Reason != gates.ReasonCorrectness || !strings.Contains(v.Summary, "first: small, seed 1, normal inputs: norm error 100%") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// A kernel that is right and faster passes, and its evidence has everything.
func TestEvidenceIsComplete(t *testing.T) {
	e, v := gate(t, include+"void scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = x[i] + x[i]; }", time.Minute)
	if v.Outcome != gates.Pass || !strings.Contains(v.Summary, "Proven: speedup +") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if len(e.Correctness.Cases) != 2*2+2 {
		t.Errorf("%d cases, want 2 shapes × 2 seeds + 2 secret ones", len(e.Correctness.Cases))
	}
	_, p := languages(t)
	for i, r := range e.Performance.Rounds {
		sofar, performance := *e, *e.Performance
		performance.Rounds, performance.Exhausted = performance.Rounds[:i], false
		sofar.Performance = &performance
		shapes := 3 // those that the rounds before have proven are timed no more
		if open := gates.OpenShapes(p, &sofar); open != nil {
			shapes = len(open)
		}
		if len(r.Series) != shapes || r.Before == nil || r.After == nil || r.Attempt != 1 {
			t.Fatalf("round %d is not whole: %+v", i, r)
		}
		for _, s := range r.Series {
			if len(s.Nanos) != 6*6 || len(s.Solo) == 0 || s.Verified != 6*2*s.Batch+len(s.Single.Candidate)*min(s.Batch, maxSingle) {
				t.Errorf("round %d on %s: %d samples, %d solo, %d verified outputs of batches of %d", i, s.Shape, len(s.Nanos), len(s.Solo), s.Verified, s.Batch)
			}
			for block := range strings.FieldsSeq(s.Order) {
				if len(block) != 6 || block[0] != block[5] || block[1] != block[4] || block[2] != block[3] {
					t.Errorf("block %q does not mirror itself", block)
				}
			}
		}
	}
	for _, b := range []*gates.Build{e.Baseline, e.Candidate} {
		if b.Resources == nil || *b.Resources.CodeSize <= 0 || b.Code == "" || b.Compiler == "" {
			t.Errorf("build evidence is not whole: %+v", b)
		}
	}
	if _, err := exec.LookPath("objdump"); err != nil {
		return
	}
	if m := e.MachineCode; m == nil || len(m.Changes) != 1 || m.Changes[0].Kernel != "scale" || m.Changes[0].Candidate.Memory == 0 || m.Changes[0].Diff == "" {
		t.Errorf("what differs in the machine code is not shown: %+v", m)
	}
}

// A kernel in C++ is called like one in C, by whatever name the compiler gave it; with a sanitizer too.
func TestCXXIsCalledLikeC(t *testing.T) {
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(correctOnly))
	if err != nil {
		t.Fatal(err)
	}
	const body = "(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
	const wrong = "(float *x, const float *y, int32_t N) { }\n"
	for entry, source := range map[string]string{
		"scale":                            "extern \"C\" void scale" + body,
		"ns::scale":                        "namespace ns { void scale" + body + "}\nvoid scale" + wrong,
		"scale(const float*, float*, int)": "void scale" + wrong + "void scale" + body,
		"ns::scale<float, 2>":              "namespace ns { template <typename T, int By> void scale" + body + "template void scale<float, 2>(const float*, float*, int);\ntemplate void scale<float, 3>(const float*, float*, int);\n}\n",
	} {
		t.Run(entry, func(t *testing.T) {
			m, err := manifest.Parse("kernel.yaml", []byte(strings.NewReplacer("source: scale.c", "source: scale.cpp", "entry: scale", "entry: '"+entry+"'").Replace(string(text))))
			if err != nil {
				t.Fatal(err)
			}
			kernel := "#include <cstdint>\n" + source
			w := newTestWorker(t, m, p, kernel, kernel, time.Minute)
			passesAndSanitizes(t, w, p)
		})
	}
}

// passesAndSanitizes judges a kernel that is right, and builds it with a sanitizer too.
func passesAndSanitizes(t *testing.T, w *Worker, p *policy.Policy) {
	t.Helper()
	e, err := gather.Gather(t.Context(), w.job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if v := gates.Judge(p, "test.yaml", e); v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s %s\n%s", v.Outcome, v.Reason, v.Summary, e.Fault, w.BuildLog())
	}
	sanitizer, _ := inspect.ForC(policy.Memcheck, w.cc.Version)
	if exe, failure, err := w.buildSanitized(t.Context(), policy.Memcheck, sanitizer, runners.Candidate, w.job.Candidate); err != nil || failure != nil || exe == "" {
		t.Errorf("with a sanitizer: %v, %v\n%s", failure, err, w.BuildLog())
	}
}

func TestNoCompiler(t *testing.T) {
	m, _ := languages(t)
	_, err := NewWorker(t.Context(), runners.Job{Manifest: m}, Config{Getenv: func(string) string { return "/no/such/cc" }})
	want := "the compiler CC=/no/such/cc was not found: no C compiler was found: install gcc or clang (Debian: apt-get install gcc libc6-dev), or set CC to one"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A cancelled run leaves no process behind and says that it was cancelled.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	m, p := languages(t)
	job := runners.Job{Manifest: m, Policy: p, Candidate: runners.Side{Dir: t.TempDir(), Variant: m.DefaultVariant}}
	w := newWorker(t, job, Config{Scratch: t.TempDir(), Getenv: func(string) string { return "" }})
	if _, err := gather.Gather(ctx, job, w, silent{}); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
}
