package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// The same matrix as in the tests of tensor maps. Everything that the kernel takes is in one struct: the tensor map among it, and
// settings that say how many boxes a block copies, one after the other.
const (
	structMapManifest = `version: 1
name: scale
mode: cuda
entry: scale
arch: [sm_90]
flags: [-O3]
source: scale.cu
toggles: {BOXES: {values: [1, 2, 4], default: 1, layer: structure}}
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C], tensor_map: {box: [32, 32], swizzle: 128, promotion: 128}}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - name: p
    access: struct
    fields:
      - {name: boxes, dtype: i32, setting: BOXES}
      - {name: x, tensor_map: x}
      - {name: y, pointer: y}
      - {name: rows, dtype: i32, value: R}
      - {name: columns, dtype: i32, value: C}
      - {name: steps, dtype: i32, settings: [32*BOXES, 32]}
launch: {grid: ["ceildiv(C, 32*BOXES)", "ceildiv(R, 32)"], block: [1024]}
reference: {source: reference.cu, entry: reference, dims: [R, C], launch: {grid: ["ceildiv(R*C, 256)"], block: [256]}}
tolerance: {abs: 0.001}
shapes:
  small: {R: 33, C: 32}
  mission: {R: 1000, C: 1024}
limits: {R: 1..100000, C: 32..4096 step 32}
secret: {R: 1..300, C: 32..512 step 32}
`
	structMapReference = `extern "C" __global__ void reference(const float *x, float *y, long long R, long long C)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < R * C)
        y[i] = 2 * x[i];
}
`
	structMapKernel = `#include <cuda.h>

struct Params { int boxes; CUtensorMap x; float *y; int rows, columns, steps[2]; };

__device__ int swizzled(int row, int column) { return row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4; }

extern "C" __global__ void scale(const __grid_constant__ Params p)
{
    __shared__ alignas(1024) float box[32 * 32];
    __shared__ alignas(8) unsigned long long arrived;
    unsigned barrier = __cvta_generic_to_shared(&arrived), to = __cvta_generic_to_shared(box);
    int row = blockIdx.y * 32, r = threadIdx.x / 32, c = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    for (int k = 0; k < p.boxes; k++) {
        int column = blockIdx.x * p.steps[0] + k * p.steps[1];
        if (column >= p.columns)
            break;
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(barrier));
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                :: "r"(to), "l"(&p.x), "r"(column), "r"(row), "r"(barrier) : "memory");
        }
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], %2; selp.u32 %0, 1, 0, q; }" : "=r"(done) : "r"(barrier), "r"(k % 2) : "memory");
        if (row + r < p.rows)
            p.y[(size_t)(row + r) * p.columns + column + c] = 2 * box[swizzled(r, c)];
        __syncthreads(); // the next box overwrites this one
    }
}
`
)

// changedSettings are edits of the manifest's implementation, with what becomes of them on a GPU.
var changedSettings = []struct {
	name, old, new string
	outcome        gates.Outcome
}{
	{"four boxes", "default: 1", "default: 4", gates.Pass},
	{"a setting by the size", "setting: BOXES}", `setting: "C >= 1024 ? 1 : 3"}`, gates.Pass}, // a box beyond the columns is left out, others are written twice
	{"boxes that are left out", "settings: [32*BOXES, 32]", "settings: [64*BOXES, 32]", gates.Defer},
}

// The kernel compiles without a GPU, with the struct as nvcc lays it out. Equal machine code with other settings is another kernel.
func TestStructTensorMapStatic(t *testing.T) {
	needsCompiler(t)
	for _, c := range changedSettings {
		own := strings.Replace(structMapManifest, c.old, c.new, 1)
		e, v := trial{manifest: structMapManifest, own: own, policy: onlyBuilt, baseline: structMapKernel, candidate: structMapKernel, reference: structMapReference, arch: "sm_90"}.gather(t)
		if v.Outcome != gates.Pass || e.Candidate.Code != e.Baseline.Code || e.SameCode {
			t.Errorf("%s: %s (%s): %s, the same kernel: %v\n%+v", c.name, v.Outcome, v.Reason, v.Summary, e.SameCode, e.Candidate.Diagnostics)
		}
	}
	b := trial{manifest: structMapManifest, policy: onlyBuilt, baseline: structMapKernel, candidate: structMapKernel, reference: structMapReference, arch: "sm_90"}.backend(t)
	if _, err := b.CheckReference(t.Context()); err != nil {
		t.Error(err)
	}
	// The headers of CUDA 12 align the map to 64 bytes.
	for manifest, kernel := range map[string]string{
		structMapManifest: strings.NewReplacer("#include <cuda.h>", "struct alignas(64) Map { unsigned char opaque[128]; };", "CUtensorMap", "Map").Replace(structMapKernel),
		strings.Replace(structMapManifest, "promotion: 128", "promotion: 128, align: 64", 1): structMapKernel,
	} {
		e, _ := trial{manifest: manifest, policy: onlyBuilt, baseline: kernel, candidate: kernel, reference: structMapReference, arch: "sm_90"}.gather(t)
		if want := map[bool]string{false: "; write align: 64 in the tensor_map of x", true: "; write align: 128 in the tensor_map of x"}[kernel == structMapKernel]; e.Candidate.OK || !strings.HasSuffix(e.Candidate.Error, want) {
			t.Errorf("%s\nwant …%s", e.Candidate.Error, want)
		}
	}
	// A pointer in the place of the tensor map is seen.
	pointer := strings.NewReplacer("{name: x, tensor_map: x}", "{name: x, pointer: x}", ", tensor_map: {box: [32, 32], swizzle: 128, promotion: 128}", "").Replace(structMapManifest)
	e, _ := trial{manifest: pointer, policy: onlyBuilt, baseline: structMapKernel, candidate: structMapKernel, reference: structMapReference, arch: "sm_90"}.gather(t)
	if d := e.Candidate.Diagnostics; e.Candidate.OK || !slices.ContainsFunc(d, func(d gates.Diagnostic) bool {
		return d.Message == "parameter 0: in the code 384 bytes at offset 112; in the manifest p (struct): 40 bytes at offset 0"
	}) {
		t.Errorf("%s\n%+v", e.Candidate.Error, d)
	}
}

// On a GPU each side is passed its own settings and a tensor map of its own memory.
func TestStructTensorMapOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	gpu, err := find("")
	if err != nil {
		t.Fatal(err)
	}
	if gpu.Arch() != "sm_90" {
		t.Skipf("the kernel is for sm_90, and this is %s", gpu.Arch())
	}
	const policy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 4, norm_error: "<= 0.1%"}
  performance: {guard: {shapes: [mission], speedup: ">= -90%"}, rounds: {min: 6, max: 6}, pairs: 5, control: 5%, solo_shift: 20%}
rules:
  - name: default
`
	for _, c := range changedSettings {
		t.Run(c.name, func(t *testing.T) {
			own := strings.Replace(structMapManifest, c.old, c.new, 1)
			e, v := trial{manifest: structMapManifest, own: own, policy: policy, baseline: structMapKernel, candidate: structMapKernel, reference: structMapReference}.gather(t)
			if v.Outcome != c.outcome || c.outcome == gates.Defer && v.Reason != gates.ReasonCorrectness {
				t.Errorf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
		})
	}
}
