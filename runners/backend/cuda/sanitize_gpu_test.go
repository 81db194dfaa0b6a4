package cuda

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

const faulty = "../../build/inspect/testdata/cuda"

// Every tool finds its mistake, in its line, and nothing in the kernel that has
// none.
func TestSanitizersOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	if _, err := inspect.FindSanitizer(t.Context(), os.Getenv); err != nil {
		t.Skip(err)
	}
	manifestYAML, err := os.ReadFile(filepath.Join(faulty, "kernel.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse("kernel.yaml", manifestYAML)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(faulty)
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Parse("test.yaml", []byte("version: 1\ngates: {build: {timeout: 1m}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	gate := &policy.SanitizeGate{
		Shapes: policy.Shapes{Names: []string{"small"}}, Distributions: []distribution.Kind{"normal"}, SecretCases: 1,
		Tools: []policy.Sanitizer{policy.Memcheck, policy.Racecheck, policy.Initcheck, policy.Synccheck},
	}
	for variant, want := range map[string]struct {
		tool string
		kind gates.FindingKind
	}{
		"clean":   {},
		"bounds":  {"memcheck", gates.KindOutOfBounds},
		"race":    {"racecheck", gates.KindRace},
		"uninit":  {"initcheck", gates.KindUninitialised},
		"barrier": {"synccheck", gates.KindBarrier},
	} {
		t.Run(variant, func(t *testing.T) {
			side := runners.Side{Dir: dir, Variant: variant}
			job := runners.Job{Manifest: m, ManifestText: string(manifestYAML), Policy: pol, Trusted: dir, Candidate: side}
			b, err := New(t.Context(), job, Config{
				Scratch: t.TempDir(), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Getenv: os.Getenv,
			})
			if err != nil {
				t.Fatal(err)
			}
			if build, err := b.Build(t.Context(), runners.Candidate, side); err != nil || !build.OK {
				t.Fatal(err, build.Error)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			s, err := b.Sanitize(ctx, gate, silent{})
			if err != nil || s.Skipped != "" {
				t.Fatal(err, s.Skipped)
			}
			for _, run := range s.Tools {
				t.Logf("%s in %.1f s: %v", run.Tool, run.Seconds, run.Findings)
				if run.Skipped != "" || run.Tool != want.tool && run.Failure != nil && len(run.Findings) == 0 && variant == "clean" {
					t.Errorf("%s: %s %+v", run.Tool, run.Skipped, run.Failure)
				}
				if run.Tool != want.tool && len(run.Findings) > 0 && variant == "clean" {
					t.Errorf("%s found %v", run.Tool, run.Findings)
				}
				if run.Tool != want.tool {
					continue
				}
				line := mistakeIn(t, filepath.Join(dir, variant+".cu"))
				if !slices.ContainsFunc(run.Findings, func(f gates.Finding) bool {
					return f.Kind == want.kind && f.File == variant+".cu" && (f.Line == line || f.OtherLine == line)
				}) {
					t.Errorf("%s did not find line %d: %v %+v", run.Tool, line, run.Findings, run.Failure)
				}
			}
		})
	}
}

// mistakeIn is the line with the mistake, by the words on it.
func mistakeIn(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := 1 + slices.IndexFunc(strings.Split(string(text), "\n"), func(s string) bool { return strings.Contains(s, "the mistake") })
	if line == 0 {
		t.Fatalf("%s has no mistake", file)
	}
	return line
}
