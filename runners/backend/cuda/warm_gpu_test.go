package cuda

import (
	"slices"
	"strings"
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
  - {name: y, dtype: f32, access: out, shape: [N/1024]}
launch: {grid: [N/1024], block: [256]}
reference: {source: reference.cu, entry: reference, launch: {grid: [N/1024], block: [32]}}
tolerance: {abs: 1e-3, rel: 1e-4}
shapes: {short: {N: 262144}, mission: {N: 4194304}}
`

const warmPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0], norm_error: "<= 0.1%"}
  performance:
    target: {shapes: all, context: [cold, warm], speedup: ">= -3%"}
    explain: none
rules: [{name: default}]
`

// A kernel that reads much is faster with its inputs in the cache, and only where the policy asks for that. A copy of the baseline is
// as fast as the baseline in both contexts.
func TestWarmOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	const (
		reference = `extern "C" __global__ void reference(const float *x, float *y) { if (threadIdx.x == 0) { float s = 0; for (int i = 0; i < 1024; i++) s += x[blockIdx.x * 1024 + i]; y[blockIdx.x] = s; } }`
		baseline  = `extern "C" __global__ void k(const float *x, float *y)
{
	__shared__ float part[8];
	float4 v = ((const float4 *)x)[blockIdx.x * 256 + threadIdx.x];
	float s = v.x + v.y + v.z + v.w;
	for (int i = 16; i > 0; i /= 2) s += __shfl_xor_sync(~0u, s, i);
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
	__syncthreads();
	if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3] + part[4] + part[5] + part[6] + part[7];
}`
	)
	candidate := strings.Replace(baseline, "v.x + v.y + v.z + v.w", "v.x + v.z + v.y + v.w", 1)
	e, v := trial{manifest: warmManifest, policy: warmPolicy, baseline: baseline, candidate: candidate, reference: reference}.gather(t)
	keepEvidence(t, "warm", e)
	if v.Outcome != gates.Pass {
		t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
	}
	if e.Performance == nil {
		t.FailNow()
	}
	// Times of launches that ran alone: in a batch, a launch overlaps with the end of the one before it.
	alone := map[string][]float64{}
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			if warm := s.Shape == "short:warm" || s.Shape == "mission:warm"; s.Cold == warm {
				t.Errorf("the series of %s is cold: %v", s.Shape, s.Cold)
			}
			switch {
			case s.Single != nil:
				alone[s.Shape] = append(alone[s.Shape], s.Single.Baseline...)
			case s.Batch == 1:
				for i, side := range strings.ReplaceAll(s.Order, " ", "") {
					if side == gates.SideBaseline {
						alone[s.Shape] = append(alone[s.Shape], s.Nanos[i])
					}
				}
			}
		}
	}
	for _, row := range v.Comparisons {
		t.Logf("%s: %+v", row.Shape, row.Baseline)
	}
	median := func(name string) float64 {
		times := slices.Sorted(slices.Values(alone[name]))
		if len(times) == 0 {
			t.Fatalf("no launch of %s ran alone", name)
		}
		return times[len(times)/2]
	}
	for _, shape := range []string{"short", "mission"} {
		cold, warm := median(shape), median(shape+":warm")
		t.Logf("%s alone: %.0f ns cold, %.0f ns warm", shape, cold, warm)
		if shape == "mission" && warm > 0.85*cold {
			t.Errorf("%s takes %.0f ns cold and %.0f ns warm", shape, cold, warm)
		}
	}
}
