package cpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/internal/runnable"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

const faulty = "../../build/inspect/testdata/c"

// sanitizer builds a variant of the faulty kernel, or of another source in its
// place, ready for the sanitizers.
func sanitizer(t *testing.T, variant, source string) *Worker {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(faulty, "kernel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(faulty)
	if err != nil {
		t.Fatal(err)
	}
	if source != "" {
		dir = sourceFolder(t, map[string]string{variant + ".c": source})
	}
	job := runners.Job{Manifest: m, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: variant}}
	w := newWorker(t, job, Config{Scratch: t.TempDir(), Seed: 1, Getenv: os.Getenv})
	return w
}

func sanitizeGate(tools ...policy.Sanitizer) *policy.SanitizeGate {
	return &policy.SanitizeGate{
		Shapes: policy.Shapes{Names: []string{"small"}}, Distributions: []distribution.Kind{"normal"}, SecretCases: 1, Tools: tools,
	}
}

func sanitizeVariant(t *testing.T, variant, source string, tools ...policy.Sanitizer) *gates.Sanitize {
	t.Helper()
	s, err := sanitizer(t, variant, source).Sanitize(t.Context(), sanitizeGate(tools...), silent{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each mistake is found in its file and line, by the words on it, with the output
// right all the while.
func TestSanitizersFindMistakes(t *testing.T) {
	for _, c := range []struct {
		variant string
		tool    policy.Sanitizer
		kind    gates.FindingKind
		says    string
	}{
		{"heap", policy.Memcheck, gates.KindOutOfBounds, "a read of 4 bytes outside the argument x in heap.c:"},
		{"stack", policy.Memcheck, gates.KindOutOfBounds, "a read of 4 bytes outside an array on the stack in stack.c:"},
		{"global", policy.Memcheck, gates.KindOutOfBounds, "a read of 4 bytes outside a global array in global.c:"},
		{"overflow", policy.Memcheck, gates.KindUndefined, "signed integer overflow: 2147483392 + 100000 cannot be represented in type 'int' in overflow.c:"},
		{"misaligned", policy.Memcheck, gates.KindMisaligned, "load of misaligned address for type 'const uint32_t', which requires 4 byte alignment in misaligned.c:"},
		{"race", policy.Racecheck, gates.KindRace, "a race between write and write in race.c:"},
		{"uninit", policy.Initcheck, gates.KindUninitialised, "a use of memory that nobody wrote in uninit.c:"},
	} {
		t.Run(c.variant, func(t *testing.T) {
			t.Parallel()
			s := sanitizeVariant(t, c.variant, "", c.tool)
			run := s.Tools[0]
			if run.Skipped != "" || run.NotApplicable != "" { // told, and a clean run is never claimed
				if c.tool == policy.Memcheck {
					t.Fatalf("every compiler that builds this project has %s: %+v", c.tool, run)
				}
				t.Skip(run.Skipped + run.NotApplicable)
			}
			if len(s.Cases) != 2 || !s.Cases[1].Secret {
				t.Errorf("cases %+v", s.Cases)
			}
			if run.Failure != nil || len(run.Findings) != 1 {
				t.Fatalf("%+v %+v", run, run.Failure)
			}
			f := run.Findings[0]
			f.Count = 1
			source, err := os.ReadFile(filepath.Join(faulty, c.variant+".c"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(source), "\n")
			wrong := 1 + slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "the mistake") })
			if f.Kind != c.kind || !strings.HasPrefix(f.String(), c.says) || f.Line != wrong && f.OtherLine != wrong {
				t.Errorf("%s: %s\nwant %s: %s%d", f.Kind, f, c.kind, c.says, wrong)
			}
			if f.Shape == "" {
				t.Error("the case is not named")
			}
		})
	}
}

func TestSanitizersFindNothing(t *testing.T) {
	t.Parallel()
	s := sanitizeVariant(t, "clean", "", policy.Memcheck, policy.Racecheck, policy.Initcheck, policy.Synccheck)
	for _, run := range s.Tools {
		if len(run.Findings) > 0 || run.Hidden > 0 || run.Failure != nil {
			t.Errorf("%+v %+v", run, run.Failure)
		}
	}
	if s.Tools[0].Skipped != "" || !strings.Contains(s.Tools[0].With, "-fsanitize=address,undefined") {
		t.Errorf("memcheck: %+v", s.Tools[0])
	}
	if !strings.Contains(s.Tools[3].NotApplicable, "one thread") {
		t.Errorf("synccheck: %+v", s.Tools[3])
	}
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates: {sanitize: {shapes: [small], tools: [memcheck, synccheck]}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := &gates.Evidence{Kernel: "faulty", Shapes: []gates.Shape{{Name: "small"}}, Candidate: &gates.Build{OK: true}, Sanitize: s}
	if v := gates.Judge(p, "p.yaml", e); v.Outcome != gates.Pass {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// What a kernel may do so that its mistake is not seen, knowingly or not.
func TestSanitizersAreNotSilenced(t *testing.T) {
	const (
		beyond = "    volatile float last = x[N];\n    (void)last;\n"
		scale  = "    for (int i = 0; i < N; i++)\n        y[i] = 2 * x[i];\n}\n"
		head   = "#include <stdint.h>\n#include <stdio.h>\n#include <unistd.h>\n"
		entry  = "void scale(const float *x, float *y, int32_t N)\n{\n"
	)
	for name, c := range map[string]struct{ source, says string }{
		"ends the process":  {head + entry + "    _exit(0);\n" + scale, "without a report (exit status 0)"},
		"closes the output": {head + entry + "    close(1);\n    close(2);\n" + beyond + scale, "without a report (exit status 86)"},
		"has its own options, looks for a macro and asks to be left out": {head +
			"const char *__asan_default_options(void) { return \"halt_on_error=0:exitcode=0:log_path=/dev/null:detect_leaks=0\"; }\n" +
			"__attribute__((no_sanitize(\"address\"), no_sanitize_address))\n" +
			entry + "#ifndef __SANITIZE_ADDRESS__\n" + beyond + "#endif\n" + scale, "outside the argument x"},
		"prints without end": {head + entry + "    for (;;)\n        puts(\"and so on\");\n" + scale, "without a report (output cut at"},
		"does not build":     {head + entry + "#ifdef __SANITIZE_ADDRESS__\n#endif\n" + "    _Static_assert(sizeof(no_sanitize_address) > 0, \"\");\n" + scale, "does not build with -fsanitize=address,undefined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := sanitizeVariant(t, "clean", c.source, policy.Memcheck).Tools[0]
			said := ""
			if run.Failure != nil {
				said = run.Failure.Detail
			}
			for _, f := range run.Findings {
				said += f.String()
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%+v: %s", run, said)
			}
		})
	}
}

// A kernel that does not come to its end within the gate's time has not been
// looked at, and that is not the runner's fault.
func TestSanitizersHaveAnEnd(t *testing.T) {
	t.Parallel()
	endless := "void scale(const float *x, float *y, int N)\n{\n    for (volatile int i = 0;;)\n        i = 1;\n}\n"
	w := sanitizer(t, "clean", endless)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	s, err := w.Sanitize(ctx, sanitizeGate(policy.Memcheck, policy.Racecheck), silent{})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range s.Tools {
		if run.Failure == nil || run.Failure.Kind != "timeout" {
			t.Errorf("%+v %+v", run, run.Failure)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if s, err := w.Sanitize(stopped, sanitizeGate(policy.Memcheck), silent{}); err == nil {
		t.Errorf("a cancelled run left evidence: %+v", s)
	}
}

// A compiler without the libraries is told before the candidate is looked at.
func TestSanitizersThatAreMissing(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("cc")
	if err != nil {
		t.Fatal(err)
	}
	cc := filepath.Join(t.TempDir(), "cc")
	script := fmt.Sprintf("#!/bin/sh\nfor a; do case $a in -fsanitize=*) echo '/usr/bin/ld: cannot find libasan.so' >&2; exit 1;; esac; done\nexec %s \"$@\"\n", real)
	if err := runnable.Write(cc, []byte(script)); err != nil {
		t.Fatal(err)
	}
	w := sanitizer(t, "heap", "")
	w.cc.Path = cc
	w.compiler = w.cc
	s, err := w.Sanitize(t.Context(), sanitizeGate(policy.Memcheck, policy.Racecheck), silent{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Tools[0].Skipped; !strings.Contains(got, "-fsanitize=address,undefined cannot be used here") || !strings.Contains(got, "install") {
		t.Errorf("memcheck: %+v", s.Tools[0])
	}
	if got := s.Tools[1].NotApplicable; !strings.Contains(got, "one thread") {
		t.Errorf("racecheck: %+v", s.Tools[1])
	}
}

// The kernel that comes with the program passes the policy that comes with it.
func TestSanitizersOnShippedStage(t *testing.T) {
	long.Test(t)
	t.Parallel()
	dir, err := filepath.Abs("../../../kernels/sdpa_cpu") // a path that stays, so that its builds can be kept
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "kernel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	policyYAML, err := policies.Shipped("cpu")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("cpu.yaml", policyYAML)
	if err != nil {
		t.Fatal(err)
	}
	job := runners.Job{Manifest: m, Policy: p, Trusted: dir, Candidate: runners.Side{Dir: dir, Variant: m.DefaultVariant}}
	w := newWorker(t, job, Config{Scratch: t.TempDir(), Getenv: os.Getenv})
	s, err := w.Sanitize(t.Context(), p.RuleFor(policy.Change{}).Gates.Sanitize, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Cases) != 3 || len(s.Tools) != 2 {
		t.Errorf("%d cases under %d tools", len(s.Cases), len(s.Tools))
	}
	for _, run := range s.Tools {
		if len(run.Findings) > 0 || run.Failure != nil {
			t.Errorf("%s: %v %+v", run.Tool, run.Findings, run.Failure)
		}
	}
}
