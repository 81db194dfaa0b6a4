package cuda

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// A matrix whose rows are scaled, read through a tensor map in boxes of 32 rows
// and 32 columns, swizzled, with rows beyond the last one filled with zeros.
const (
	mapManifest = `version: 1
name: scale
mode: cuda
entry: scale
arch: [sm_90]
flags: [-O3]
source: scale.cu
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C], tensor_map: {box: [32, 32], swizzle: 128, promotion: 128}}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - {name: N, dtype: i32, access: scalar, value: R*C}
launch:
  grid: ["C/32", "ceildiv(R, 32)"]
  block: [1024]
reference:
  source: reference.cu
  entry: reference
  launch: {grid: ["ceildiv(R*C, 256)"], block: [256]}
tolerance: {abs: 0.001}
shapes:
  small: {R: 33, C: 32}
  mission: {R: 1000, C: 1024}
limits: {R: 1..100000, C: 32..4096 step 32}
secret: {R: 1..300, C: 32..512 step 32}
`
	mapKernel = `struct alignas(64) Map { unsigned char opaque[128]; };

// Element (row, column) of a box of 128-byte rows lies where the swizzle put it:
// 16-byte chunks change places within groups of eight rows.
__device__ int swizzled(int row, int column) { return row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4; }

extern "C" __global__ void scale(const __grid_constant__ Map x, float *y, int N)
{
    __shared__ alignas(1024) float box[32 * 32];
    __shared__ alignas(8) unsigned long long arrived;
    unsigned barrier = __cvta_generic_to_shared(&arrived), to = __cvta_generic_to_shared(box);
    int C = gridDim.x * 32, column = blockIdx.x * 32, row = blockIdx.y * 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(barrier));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            :: "r"(to), "l"(&x), "r"(column), "r"(row), "r"(barrier) : "memory");
    }
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier) : "memory");
    int r = threadIdx.x / 32, c = threadIdx.x % 32;
    if ((row + r) * C < N)
        y[(row + r) * C + column + c] = 2 * box[swizzled(r, c)];
}
`
)

func TestTensorMapOnGPU(t *testing.T) {
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
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 4, norm_error: "<= 0.1%", determinism: true}
  performance: {guard: {shapes: [mission], speedup: ">= -50%"}, rounds: {min: 6, max: 6}, pairs: 5, control: 5%, solo_shift: 20%}
rules:
  - name: default
`
	for _, c := range []struct {
		name, read string
		outcome    gates.Outcome
		says       string
	}{
		// The same product in other machine code.
		{"every element arrives", "(N > 0 ? 2 : 3) * box[swizzled(r, c)]", gates.Pass, "Proven"},
		{"it is swizzled as asked", "2 * box[32 * r + c]", gates.Defer, "norm error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			candidate := strings.Replace(mapKernel, "2 * box[swizzled(r, c)]", c.read, 1)
			e, v := trial{manifest: mapManifest, policy: policy, baseline: mapKernel, candidate: candidate}.gather(t)
			if v.Outcome != c.outcome || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s\n%s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
		})
	}
}

// The kernel compiles, and its manifest is right, on hosts without a GPU too.
func TestTensorMapStatic(t *testing.T) {
	needsCompiler(t)
	const policy = "version: 1\ngates: {ptxas: {registers: \"<= 64\"}}\nrules:\n  - name: default\n"
	e, v := trial{manifest: mapManifest, policy: policy, baseline: mapKernel, candidate: mapKernel, arch: "sm_90"}.gather(t)
	if v.Outcome != gates.Pass || e.Candidate.Arch != "sm_90" {
		t.Errorf("%s (%s): %s %v", v.Outcome, v.Reason, v.Summary, e.Candidate)
	}
}
