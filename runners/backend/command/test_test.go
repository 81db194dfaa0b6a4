package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// googleBenchmark returns the fetched library's folder.
func googleBenchmark(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "testdata/fetch-googlebenchmark.sh", "--check").Output()
	if err != nil {
		const missing = "no Google Benchmark: run runners/backend/command/testdata/fetch-googlebenchmark.sh"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return strings.TrimSpace(string(out))
}

// TestGoogleBenchmarkBinary uses a real Google Benchmark binary that prints only times, and a test
// program whose exit status is the correctness gate.
func TestGoogleBenchmarkBinary(t *testing.T) {
	t.Parallel()
	library := googleBenchmark(t)
	const (
		quick = "inline float sum(const float *x, int n) { float s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }\n"
		wrong = "inline float sum(const float *x, int n) { float s = 0; for (int i = 0; i < n / 64 * 64; i++) s += x[i]; return s; }\n"
		// Wrong in the same place.
		alike = "inline float sum(const float *x, int n) { float s = 0; for (int i = n / 64 * 64; i-- > 0;) s += x[i]; return s; }\n"
	)
	for _, c := range []struct {
		name, base, head string
		outcome          gates.Outcome
		reason           gates.Reason
		says             string
	}{
		{"faster", "", quick, "", "", ""}, // a busy machine may not be able to tell how much
		{"wrong", "", wrong, gates.Defer, gates.ReasonCorrectness, "The test command fails: the test command ended with status 1: the sum of 1 halves is 0"},
		{"wrong before", alike, wrong, gates.Error, gates.ReasonSetup, "The test command fails on both sides: the test command ended with status 1: the sum of 1 halves is 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/googlebenchmark/kernel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Parse("kernel.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse("test.yaml", []byte(`version: 1
gates:
  correctness: {shapes: all, norm_error: "<= 1%", secret_cases: 3}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    rounds: {min: 6, max: 6}
    pairs: 4
    control: 50%
    solo_shift: 100%
    tails: none
rules:
  - name: default
`))
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			side := func(name, sum string) runners.Side {
				dir := filepath.Join(root, name)
				for from, to := range map[string]string{"testdata/googlebenchmark": dir, library: filepath.Join(dir, "googlebenchmark")} {
					if err := os.CopyFS(to, os.DirFS(from)); err != nil {
						t.Fatal(err)
					}
				}
				// Nothing is timed, and compiling the library's headers takes long.
				if c.outcome != "" {
					if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte("set -e\nc++ -O1 test.cc -o test\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if sum != "" {
					if err := os.WriteFile(filepath.Join(dir, "sum.h"), []byte(sum), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				return runners.Side{Dir: dir, Variant: m.DefaultVariant}
			}
			base := side("base", c.base)
			job := runners.Job{Manifest: m, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: side("head", c.head)}
			e, v, w := gate(t, job, Config{Scratch: filepath.Join(root, "build"), Seed: 1, Timeout: time.Minute, Getenv: noEnv})
			if c.outcome != "" && (v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says)) {
				t.Fatalf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, w.BuildLog())
			}
			if c.outcome != "" {
				return
			}
			if v.Reason == gates.ReasonCorrectness || v.Reason == gates.ReasonSetup || e.Performance == nil || e.Fault != "" {
				t.Fatalf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, w.BuildLog())
			}
			if e.Correctness.Test == nil || len(e.Correctness.Cases) > 0 || !strings.Contains(strings.Join(v.Notes, "\n"), "Only the test command's exit status says that the output is right") {
				t.Errorf("correctness %+v, notes %q", e.Correctness, v.Notes)
			}
			for _, r := range e.Performance.Rounds {
				for _, s := range r.Series {
					if len(s.Nanos) != 6 || s.Batch != 3 || s.Nanos[0] <= 0 || s.Verified != 0 {
						t.Errorf("series %+v", s)
					}
				}
			}
		})
	}
}
