package cuda

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

const warmManifest = `version: 1
name: warm
mode: cuda
entry: k
arch: [sm_89, sm_90]
source: scale.cu
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
launch: {grid: ["ceildiv(N, 1024)"], block: [256]}
reference: {source: reference.cu, entry: reference, launch: {grid: ["ceildiv(N, 256)"], block: [256]}}
tolerance: {abs: 1e-5, rel: 1e-5}
shapes: {short: {N: 262144}, mission: {N: 2097152}}
`

const warmPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 0.1%"}
  performance:
    target: {shapes: all, context: [cold, warm], speedup: ">= -3%"}
    explain: none
rules: [{name: default}]
`

// A copy of the baseline is as fast as the baseline from a cold cache and from a warm one, and its inputs are in the cache only
// where the policy asks for that: the shapes fit into it, and memory is much slower.
func TestWarmOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	const (
		reference = `extern "C" __global__ void reference(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }`
		baseline  = `extern "C" __global__ void k(const float *x, float *y, int n) { int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4; if (i + 3 < n) { float4 v = *(const float4 *)(x + i); *(float4 *)(y + i) = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w); } }`
		candidate = `extern "C" __global__ void k(const float *x, float *y, int n) { int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4; if (i < n - 3) { float4 v = *(const float4 *)(x + i); *(float4 *)(y + i) = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w); } }`
	)
	e, v := trial{manifest: warmManifest, policy: warmPolicy, baseline: baseline, candidate: candidate, reference: reference}.gather(t)
	if v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
	}
	times := map[string]float64{}
	for _, row := range v.Comparisons {
		if row.Baseline != nil {
			times[row.Shape] = row.Baseline.P50
		}
		t.Logf("%s: %+v, alone %+v", row.Shape, row.Baseline, row.Alone)
	}
	for _, shape := range []string{"short", "mission"} {
		if cold, warm := times[shape], times[shape+":warm"]; warm <= 0 || warm > 0.85*cold {
			t.Errorf("%s takes %.2f µs cold and %.2f µs warm", shape, cold, warm)
		}
	}
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if warm := s.Shape == "short:warm" || s.Shape == "mission:warm"; s.Cold == warm {
				t.Errorf("the series of %s is cold: %v", s.Shape, s.Cold)
			}
		}
	}
}
