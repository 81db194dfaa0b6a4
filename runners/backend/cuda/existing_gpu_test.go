package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

const existingManifest = `version: 1
name: scale
mode: cuda
entry: scale
arch: [sm_80, sm_86, sm_89, sm_90]
source: scale.cu
launch: {grid: ["ceildiv(N, 128)"], block: [128], max_threads: 128}
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.cu, entry: reference, launch: {grid: ["ceildiv(N, 128)"], block: [128]}}
tolerance: {abs: 1.0e-5}
shapes: {even: {N: 4096}, odd: {N: 4095}}
secret: {N: 1..5000}
`

const existingPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 90%", secret_cases: 2, determinism: true, existing: WORD}
  sanitize: {shapes: [even], secret_cases: 1, tools: [memcheck, racecheck], existing: WORD}
  performance: {guard: {shapes: all, speedup: ">= -90%"}, rounds: {min: 6, max: 6}, pairs: 10, control: 50%, solo_shift: 50%, tails: none}
rules: [{name: default}]
`

// A change that keeps what is wrong with the baseline passes, with a report; one that adds
// a mistake of its own does not. In the timed launches the old mistakes are made as well.
func TestExistingOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	if _, err := inspect.FindSanitizer(t.Context(), os.Getenv); err != nil {
		t.Skip(err)
	}
	kernel := func(before, element, after string) string {
		return "extern \"C\" __global__ void scale(const float *x, float *y, int N)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n" + before +
			"    if (i >= N)\n        return;\n    y[i] = " + element + ";\n" + after + "}\n"
	}
	const (
		right = "2 * x[i]"
		other = "0.5f * (4 * x[i])"
		tail  = "N % 2 && i == N - 1 ? 0 : " + right
		kept  = "i < N - N % 2 ? " + other + " : 0"
		two   = "N % 2 && i >= N - 2 ? 0 : " + right
		over  = "    if (i < N && x[i + 4] > 1e30f) y[i] = 7;\n"
		above = "    if (i < N && x[i + 8] > 1e30f) y[i] = 9;\n"
		wide  = "    if (i < N && ((const float2 *)x)[i / 2 + 2].y > 1e30f) y[i] = 7;\n"
		race  = "    __shared__ float s[128];\n    s[threadIdx.x] = i;\n    if (s[127 - threadIdx.x] < -1e9f) y[0] = 1;\n"
		order = "    y[i] = nextafterf(y[i], clock64() & 16 ? 9e9f : -9e9f);\n"
	)
	for name, c := range map[string]struct {
		base, head string
		passes     bool
		says       string
	}{
		"tail kept":            {kernel("", tail, ""), kernel("", kept, ""), true, "as before"},
		"tail of two":          {kernel("", tail, ""), kernel("", two, ""), false, "2 of 4095 elements"},
		"over kept":            {kernel(over, right, ""), kernel("\n\n"+over, other, ""), true, "1 sanitizer finding as before"},
		"over on another line": {kernel(over, right, ""), kernel(above, other, ""), false, "memcheck"}, // seen twice as often
		"over, wider":          {kernel(over, right, ""), kernel(wide, other, ""), false, "memcheck"},
		"over and a race":      {kernel(over, right, ""), kernel(over+race, other, ""), false, "racecheck"},
		"race kept":            {kernel(race, right, ""), kernel(race, other, ""), true, "as before"},
		"race and over":        {kernel(race, right, ""), kernel(race+over, other, ""), false, "memcheck"},
		"varies kept":          {kernel("", right, order), kernel("", other, order), true, "as before"},
		"varies":               {kernel("", right, ""), kernel("", other, order), false, "different bits"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			reference := "extern \"C\" __global__ void reference(const float *x, float *y, int N)\n{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < N)\n        y[i] = 2 * x[i];\n}\n"
			root := t.TempDir()
			for file, text := range map[string]string{"base/scale.cu": c.base, "base/reference.cu": reference, "head/scale.cu": c.head} {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m, err := manifest.Parse("kernel.yaml", []byte(existingManifest))
			if err != nil {
				t.Fatal(err)
			}
			policy := func(word string) *policy.Policy {
				p, err := policy.Parse("p.yaml", []byte(strings.ReplaceAll(existingPolicy, "WORD", word)))
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			base := runners.Side{Dir: filepath.Join(root, "base"), Variant: m.DefaultVariant}
			job := runners.Job{
				Manifest: m, ManifestText: existingManifest, Policy: policy("report"), Trusted: base.Dir, Baseline: &base,
				Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: m.DefaultVariant},
			}
			b, err := New(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Getenv: os.Getenv})
			if err != nil {
				t.Fatal(err)
			}
			e, err := gather.Gather(t.Context(), job, b, silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(job.Policy, "p.yaml", e)
			if (v.Outcome == gates.Pass) != c.passes || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if v := gates.Judge(policy("defer"), "p.yaml", e); v.Outcome != gates.Defer {
				t.Errorf("where the policy defers: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if e.Sanitize != nil {
				for _, run := range e.Sanitize.Tools {
					t.Logf("%s: %+v hidden %d, the baseline: %+v", run.Tool, run.Findings, run.Hidden, run.Baseline)
				}
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			keepEvidence(t, name, e)
		})
	}
}
