package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// The test's own binary is the worker too.
const serveWord = "serve-gpu-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveWord {
		if err := Worker(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Report(runners.Event) {}

// needsGPU skips a test where there is nothing to measure on.
func needsGPU(t *testing.T) {
	t.Helper()
	if _, err := find(""); err != nil {
		t.Skip(err)
	}
}

// needsCompiler skips a test where there is no nvcc, but not in CI, where
// `make setup` has fetched it.
func needsCompiler(t *testing.T) {
	t.Helper()
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// around wraps a kernel's body; i is the thread's element.
func around(body string) string {
	return "extern \"C\" __global__ void scale(const float *x, float *y, int N)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n" + body + "\n}\n"
}

const (
	// The baseline computes for a while what the compiler cannot see through.
	baselineBody = `    if (i >= N) return;
    float v = x[i], one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
    for (int k = 0; k < 400; k++) v = fmaf(v, one, zero);
    y[i] = x[i] + v;`
	fasterBody = "    if (i < N) y[i] = 2 * x[i];"

	policyText = `version: 1
gates:
  ptxas: {registers: "<= 64", spill_stores: "<= 0B"}
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 2, norm_error: "<= 0.1%", determinism: true}
  performance:
    target: {shapes: [mission], speedup: ">= +5%"}
    guard: {shapes: all, speedup: ">= -50%"}
    rounds: {min: 6, max: 12}
    pairs: 10
    control: 3%
    solo_shift: 10%
rules:
  - name: default
`
)

// A trial is one run of a candidate against a baseline.
type trial struct {
	manifest, policy    string
	baseline, candidate string
	own                 string // the candidate's manifest, where it is another
	reference           string // of testdata where it is empty
	python              string // a reference in Python, beside the other
	arch                string // without a GPU
	timeout             time.Duration
	recorded            map[string][]byte // files of recordings, by name
}

func (tr trial) gather(t *testing.T) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	b := tr.backend(t)
	e, err := gather.Gather(t.Context(), b.job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(b.job.Policy, "test.yaml", e)
}

// backend is ready to gather what is known of the trial.
func (tr trial) backend(t *testing.T) *Backend {
	t.Helper()
	if tr.manifest == "" {
		text, err := os.ReadFile("testdata/kernel.yaml")
		if err != nil {
			t.Fatal(err)
		}
		tr.manifest = string(text)
	}
	if tr.reference == "" {
		text, err := os.ReadFile("testdata/reference.cu")
		if err != nil {
			t.Fatal(err)
		}
		tr.reference = string(text)
	}
	m, err := manifest.Parse("kernel.yaml", []byte(tr.manifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(tr.policy))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	fill := func(name string, files map[string]string) string {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	// The sides' folders have nothing else, so that a source is compiled once whatever a test's reference is.
	side := func(name, source string) runners.Side {
		return runners.Side{Dir: fill(name, map[string]string{"scale.cu": source}), Variant: m.DefaultVariant}
	}
	base := side("base", tr.baseline)
	job := runners.Job{
		Manifest: m, ManifestText: tr.manifest, Policy: p, Baseline: &base, Candidate: side("head", tr.candidate),
		Trusted: fill("trusted", map[string]string{"reference.cu": tr.reference, "reference.py": tr.python}),
	}
	for name, data := range tr.recorded {
		job.Recorded = filepath.Join(root, "recorded")
		if err := os.MkdirAll(job.Recorded, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(job.Recorded, runners.RecordingFile(name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if tr.own != "" {
		s := &job.Candidate
		if s.Manifest, err = manifest.Join("kernel.yaml", []byte(tr.manifest), []byte(tr.own)); err != nil {
			t.Fatal(err)
		}
		s.ManifestText, s.Variant = tr.own, s.Manifest.DefaultVariant
	}
	b, err := New(t.Context(), job, Config{
		Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord},
		Arch: tr.arch, LaunchTimeout: tr.timeout, Getenv: os.Getenv, Devices: gpus.GPU{}.Files("/dev"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Without a GPU a kernel still compiles for any architecture, and its resources
// are judged.
func TestStatic(t *testing.T) {
	needsCompiler(t)
	const static = `version: 1
gates:
  ptxas: {registers: "<= 32", spill_stores: "<= 0B", blocks_per_sm: ">= 2"}
rules:
  - name: default
`
	for _, arch := range []string{"sm_89", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			e, v := trial{policy: static, baseline: around(baselineBody), candidate: around(fasterBody), arch: arch}.gather(t)
			if v.Outcome != gates.Pass {
				t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			r := e.Candidate.Resources
			if r == nil || *r.Registers <= 0 || *r.BlockThreads != 256 || e.Candidate.Arch != arch || e.Candidate.Code == e.Baseline.Code {
				t.Errorf("the build's evidence is not whole: %+v", e.Candidate)
			}
		})
	}
	t.Run("too many registers", func(t *testing.T) {
		body := "    float v[48];\n    for (int k = 0; k < 48; k++) v[k] = x[(i + k) % N];\n    __syncthreads();\n    float s = 0;\n    for (int k = 0; k < 48; k++) for (int m = 0; m < 48; m++) s += v[k] * v[m];\n    if (i < N) y[i] = s;"
		_, v := trial{policy: static, baseline: around(baselineBody), candidate: around(body), arch: "sm_89"}.gather(t)
		if v.Reason != gates.ReasonResources || !strings.Contains(v.Summary, "Over budget: registers") {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
	t.Run("does not compile", func(t *testing.T) {
		_, v := trial{policy: static, baseline: around(baselineBody), candidate: around("    y[i] = nothing;"), arch: "sm_89"}.gather(t)
		if v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, `scale.cu:4: identifier "nothing" is undefined`) {
			t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
	t.Run("not for this GPU", func(t *testing.T) {
		e, v := trial{policy: static, baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_75"}.gather(t)
		if v.Outcome != gates.Error || !strings.Contains(e.Fault, "is built for sm_89, sm_90, but the GPU is sm_75 (add sm_75 to arch in kernel.yaml)") {
			t.Errorf("%s: %s", v.Outcome, v.Summary)
		}
	})
}
