package measure

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
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/host/sandbox"
)

const twiceManifest = `version: 1
name: twice
mode: cuda
arch: [sm_89, sm_90]
entry: twice
source: twice.cu
launch: {grid: ["ceildiv(N, 256)"], block: [256]}
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.cu, entry: twice_reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.001}
shapes: {mission: {N: 1024}}
limits: {N: 1..100000}
secret: {N: 1..5000}
`

const (
	twiceSource    = "extern \"C\" __global__ void twice(const float* x, float* y, int N) { int i = blockIdx.x * 256 + threadIdx.x; if (i < N) y[i] = 2 * x[i]; }\n"
	thriceSource   = "extern \"C\" __global__ void twice(const float* x, float* y, int N) { int i = blockIdx.x * 256 + threadIdx.x; if (i < N) y[i] = 3 * x[i]; }\n"
	twiceReference = "extern \"C\" __global__ void twice_reference(const float* x, float* y, int N) { for (int i = threadIdx.x; i < N; i += 32) y[i] = 2 * x[i]; }\n"

	measuredPolicy = "version: 1\ngates:\n  ptxas: {registers: \"<= 64\"}\n  correctness: {shapes: all, seeds: [0], norm_error: \"<= 1%\"}\nrules: [{name: default}]\n"
	staticPolicy   = "version: 1\ngates:\n  ptxas: {registers: \"<= 64\"}\nrules: [{name: default}]\n"
)

// twice is a job of a CUDA kernel, before and after.
func twice(t *testing.T, policyYAML, before, after string) runners.Job {
	t.Helper()
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); (err != nil || !sandbox.Probe().Works()) && os.Getenv("CI") == "" {
		t.Skipf("nvcc and a sandbox are needed: %v (run make setup)", err)
	}
	m, err := manifest.Parse("kernel.yaml", []byte(twiceManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	side := func(source string) runners.Side {
		dir := t.TempDir()
		for name, text := range map[string]string{"kernel.yaml": twiceManifest, "twice.cu": source, "reference.cu": twiceReference} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return runners.Side{Dir: dir, Variant: m.DefaultVariant}
	}
	baseline := side(before)
	return runners.Job{Key: "k", Manifest: m, ManifestText: twiceManifest, Policy: p, Trusted: baseline.Dir, Baseline: &baseline, Candidate: side(after)}
}

// TestBuild checks that the evidence is complete if no GPU could make a difference. Otherwise the
// job is open, and the compiled code is among the artifacts.
func TestBuild(t *testing.T) {
	config := Config{Cache: toolchaintest.Builds(t), Getenv: os.Getenv}
	for name, c := range map[string]struct {
		policy, before, after string
		spoil                 func(*runners.Job, *Config)
		open, handed          bool
		outcome               gates.Outcome
		says                  string
	}{
		"equal code":                  {measuredPolicy, twiceSource, "// a remark\n" + twiceSource, nil, false, false, gates.Pass, "the machine code is the same"},
		"it does not compile":         {measuredPolicy, twiceSource, "nonsense\n" + twiceSource, nil, false, false, gates.Defer, "does not build"},
		"over its budget":             {strings.Replace(measuredPolicy, "<= 64", "<= 2", 1), twiceSource, thriceSource, nil, false, false, gates.Defer, "registers"},
		"other code":                  {measuredPolicy, twiceSource, thriceSource, nil, true, true, "", ""},
		"other code, nothing to run":  {staticPolicy, twiceSource, thriceSource, nil, false, false, gates.Pass, "This was a static check"},
		"neither compiles":            {measuredPolicy, "nonsense\n" + twiceSource, "nonsense\n" + twiceSource, nil, true, false, "", ""},
		"it does not compile for one": {measuredPolicy, twiceSource, "#if __CUDA_ARCH__ == 900\nnonsense\n#endif\n" + twiceSource, nil, true, true, "", ""},
		"it is equal for one":         {measuredPolicy, twiceSource, "#if __CUDA_ARCH__ == 900\n" + thriceSource + "#else\n" + twiceSource + "#endif\n", nil, true, true, "", ""},
		"a compiler that is not here": {measuredPolicy, twiceSource, thriceSource, func(j *runners.Job, _ *Config) {
			j.Candidate.Toolchains.NVCC = &policy.Toolchain{Version: "1.2.3"}
		}, true, true, "", "the policy pins nvcc 1.2.3"},
		"no compiler": {measuredPolicy, twiceSource, twiceSource, func(_ *runners.Job, c *Config) { c.Getenv = func(string) string { return "" } }, true, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "other code" { // it comes first, and the others find its builds in the cache
				t.Parallel()
			}
			job, config := twice(t, c.policy, c.before, c.after), config
			if c.spoil != nil {
				c.spoil(&job, &config)
			}
			if _, err := toolchain.FindCUDA(t.Context(), config.Getenv); name == "no compiler" && err == nil {
				t.Skip("this host has a CUDA toolkit of its own")
			}
			got, err := config.Build(t.Context(), job, t.TempDir(), silent{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Open != c.open || (len(got.Artifacts) == 1) != c.handed {
				t.Errorf("open %v with %v; %s\n%s", got.Open, got.Artifacts, got.Evidence.Fault, got.BuildLog)
			}
			if c.open {
				if !strings.Contains(got.Evidence.Fault, c.says) {
					t.Errorf("the fault is %q", got.Evidence.Fault)
				}
				return
			}
			v := gates.Judge(job.Policy, "test.yaml", got.Evidence)
			var said strings.Builder
			said.WriteString(v.Summary)
			for _, g := range v.Gates {
				said.WriteString("\n" + g.Text)
			}
			if v.Outcome != c.outcome || !strings.Contains(said.String(), c.says) || gates.Next(job.Policy, got.Evidence).Gate != "" {
				t.Errorf("%s: %s", v.Outcome, &said)
			}
			if !slices.Contains(got.Evidence.Notes, "Compiled for sm_89, sm_90.") {
				t.Errorf("the notes are %q", got.Evidence.Notes)
			}
		})
	}
}

// TestMeasureWithBuilds checks that a runner that receives compiled code does not compile it again,
// and records where it was compiled.
func TestMeasureWithBuilds(t *testing.T) {
	t.Parallel()
	job := twice(t, measuredPolicy, twiceSource, thriceSource)
	made, err := Config{Cache: toolchaintest.Builds(t), Getenv: os.Getenv}.Build(t.Context(), job, t.TempDir(), silent{})
	if err != nil || len(made.Artifacts) != 1 {
		t.Fatal(err, made.Artifacts, made.BuildLog)
	}
	f, err := os.Open(made.Artifacts[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	builds := t.TempDir()
	if err := bundle.UnpackBuilds(f, builds); err != nil {
		t.Fatal(err)
	}
	if job.Policy, err = policy.Parse("test.yaml", []byte(staticPolicy)); err != nil {
		t.Fatal(err)
	}
	job.Builds, job.Builder = builds, "build1"
	static := Config{Static: true, Arch: "sm_90", Getenv: os.Getenv}
	got, err := static.Measure(t.Context(), job, t.TempDir(), silent{})
	if err != nil || got.Evidence.Fault != "" {
		t.Fatal(err, got.Evidence.Fault)
	}
	if e := got.Evidence; !e.Baseline.Cached || !e.Candidate.Cached || e.Baseline.Code == e.Candidate.Code || !slices.Contains(e.Notes, "Compiled on build1.") {
		t.Errorf("baseline %+v, candidate %+v, notes %q", e.Baseline, e.Candidate, e.Notes)
	}
	// Builds of a different change are not used, and not mentioned.
	other := twice(t, staticPolicy, twiceSource, "// elsewhere\n"+thriceSource)
	other.Baseline, other.Builds, other.Builder = nil, builds, "build1"
	got, err = static.Measure(t.Context(), other, t.TempDir(), silent{})
	if err != nil || got.Evidence.Fault != "" || got.Evidence.Candidate.Cached || len(got.Evidence.Notes) > 0 {
		t.Errorf("%v: %+v", err, got.Evidence)
	}
}

// TestBuildPreparesMeasuring checks that the reference and the judge's own kernels are handed over,
// too.
func TestBuildPreparesMeasuring(t *testing.T) {
	t.Parallel()
	job := twice(t, measuredPolicy, twiceSource, thriceSource)
	scratch := t.TempDir()
	if _, err := (Config{Cache: toolchaintest.Builds(t), Getenv: os.Getenv}).Build(t.Context(), job, scratch, silent{}); err != nil {
		t.Fatal(err)
	}
	handed := &toolchain.Handover{Dir: filepath.Join(scratch, "builds")}
	b, err := Config{Static: true, Arch: "sm_89", Getenv: os.Getenv}.newCUDA(t.Context(), job, t.TempDir(), handed)
	if err != nil {
		t.Fatal(err)
	}
	b.Prepare(context.Background())
	if n := handed.Taken(); n != 2 {
		t.Errorf("%d of the reference and the judge's kernels were handed on:\n%s", n, b.BuildLog())
	}
}
