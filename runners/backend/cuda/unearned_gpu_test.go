package cuda

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// Launch by launch thread 0 of a block walks over the input, line by line, and each address depends on what was read before:
// most of the time goes into fetching lines that are in no cache.
const chase = `    __shared__ float huge;
    if (threadIdx.x == 0) {
        float count = 0;
        for (int k = 0, at = 0; k < N / 32; k++) {
            bool found = x[at] > 1e30f;
            count += found;
            at = (at + 32 + found) % N;
        }
        huge = count;
    }
    __syncthreads();
    if (i < N) y[i] = 2 * x[i] + 1e-38f * huge;`

// prefetching is a kernel that fetches the inputs of other launches of its batch into the L2 while its own work waits.
const prefetching = `extern "C" __global__ void scale(const float *const __grid_constant__ px, float *const __grid_constant__ py, const __grid_constant__ int N)
{
    const float *x = px; float *y = py;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (N == 4096 && blockIdx.x >= 16) {
        if (blockIdx.x > 16) return;
        unsigned long long own = (unsigned long long)x, at = (unsigned long long)&px & ~7ull;
        for (int k = threadIdx.x; k < 512; k += blockDim.x) {
            unsigned long long v = *(volatile unsigned long long *)(at - 2048 + 8 * k);
            if (v != own && v > (0x1000ull << 32) && v < (0x5100ull << 32) && (v & 0x1fffff) == (own & 0x1fffff))
                for (int line = 0; line < 128; line++)
                    asm volatile("prefetch.global.L2 [%0];" : : "l"(v + 128 * line));
        }
        return;
    }
` + chase + "\n}\n"

// skipsAlone returns at once where no other launch's parameters are near: nobody would have done its work.
const skipsAlone = `        {
            __shared__ int others;
            if (threadIdx.x == 0) others = 0;
            __syncthreads();
            unsigned long long me = (unsigned long long)px, near = (unsigned long long)&px & ~7ull;
            for (int k = threadIdx.x; k < 512; k += blockDim.x) {
                unsigned long long v = *(volatile unsigned long long *)(near - 2048 + 8 * k);
                if (v != me && v > (0x1000ull << 32) && v < (0x5100ull << 32) && (v & 0x1fffff) == (me & 0x1fffff)) atomicAdd(&others, 1);
            }
            __syncthreads();
            if (others == 0) return;
        }
`

// largeCode is some 120 kB of machine code: so many dependent operations, each with a constant of its own.
func largeCode(operations string) string {
	return around(`    if (i >= N) return;
    float v = x[i], zero = 1e-30f * x[0];
    #pragma unroll
    for (int k = 0; k < ` + operations + `; k++) v = fmaf(v, 1.0f, zero * (float)(k + 1));
    y[i] = x[i] + v;`)
}

// Ways to be judged faster than one is, each by itself: none passes. Honest kernels of sizes that single launches might misjudge do.
func TestUnearnedGainsOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	small := strings.Replace(string(text), "mission: {N: 1000000}", "mission: {N: 4096}", 1)
	wide := strings.Replace(small, `grid: ["ceildiv(N, 256)"]
  block: [256]
reference`, `grid: ["N == 4096 ? 128 : ceildiv(N, 256)"]
  block: [256]
reference`, 1)
	honest := around("    if (i >= N) return;\n" + longLoop + "    y[i] = r;")
	work := func(operations string) string { return strings.Replace(honest, "k < 20000", "k < "+operations, 1) }
	kinds := strings.Replace(singlePolicy, "[normal, uniform]", "[normal, uniform, constant, dominant]", 1)
	guarded := strings.Replace(singlePolicy, "    rounds:", "    guard: {speedup: \">= -2%\"}\n    rounds:", 1)
	for _, c := range []struct {
		name, manifest, policy, baseline, candidate string
		reasons                                     string // "": it passes
	}{
		{"shares work in one launch of four", wide, singlePolicy, honest, sharing(2048, 1, 4, ""), "suspicious too-slow"},
		{"gains a part and shares a part", wide, singlePolicy, honest, strings.Replace(sharing(2048, 1, 3, ""), "k < 20000", "k < 18900", 1), "suspicious too-slow"},
		{"shares work and skips when it runs alone", wide, singlePolicy, honest, sharing(2048, 7, 1, skipsAlone), "correctness"},
		{"fetches the inputs of its neighbours", wide, singlePolicy, around(chase), prefetching, "suspicious too-slow"},
		{"answers constant inputs at once", small, kinds, honest,
			around("    if (i >= N) return;\n    if (x[0] == x[1] && x[1] == x[N / 2] && x[0] == x[N - 1]) { y[i] = 2 * x[i]; return; }\n" + longLoop + "    y[i] = r;"), "too-slow regression"},
		{"fast on the shapes of the manifest alone", small, guarded, honest,
			around("    if (i >= N) return;\n    if (N == 4096 || N == 1000) { y[i] = 2 * x[i]; return; }\n" + strings.Replace(longLoop, "20000", "24000", 1) + "    y[i] = r;"), "regression"},
		{"fast in most launches and slow in some", small, singlePolicy, honest,
			around("    if (i >= N) return;\n    int count = (__float_as_uint(x[3]) * 2654435761u >> 16) % 20 < 3 ? 48000 : 15000;\n" + strings.Replace(longLoop, "k < 20000", "k < count", 1) + "    y[i] = r;"), "too-slow"},
		{"lets the next launch start early", small, singlePolicy, honest,
			around("#if __CUDA_ARCH__ >= 900\n    asm volatile(\"griddepcontrol.launch_dependents;\");\n#endif\n    if (i >= N) return;\n" + longLoop + "    y[i] = r;"), "too-slow"},
		{"remembers in constant memory", small, singlePolicy, honest, "__constant__ float keys[4096], results[4096];\n" +
			around(`    if (i >= N) return;
    if (N == 4096 && keys[i] == x[i]) { y[i] = results[i]; return; }
`+longLoop+`    y[i] = r;
    if (N == 4096) {
        unsigned long long k = (unsigned long long)&keys[i], s = (unsigned long long)&results[i];
        asm volatile("" : "+l"(k), "+l"(s)); // the compiler must not see that these are constants
        *(volatile float *)k = x[i];
        *(volatile float *)s = r;
    }`), "correctness too-slow"},
		{"an honest gain of 3 µs", small, singlePolicy, work("800"), work("600"), ""},
		{"an honest gain in 120 kB of code", small, singlePolicy, largeCode("3800"), largeCode("2900"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, v := trial{manifest: c.manifest, policy: c.policy, baseline: c.baseline, candidate: c.candidate, timeout: 2 * time.Second}.gather(t)
			if c.reasons == "" && v.Outcome != gates.Pass || c.reasons != "" && (v.Outcome != gates.Defer || !strings.Contains(" "+c.reasons+" ", " "+string(v.Reason)+" ")) {
				t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			if len(v.Comparisons) > 0 && v.Comparisons[0].Alone != nil {
				t.Logf("in a batch %+.1f %%, alone %+.1f %%", 100*v.Comparisons[0].Speedup.Value, 100*v.Comparisons[0].Alone.Value)
			}
			keepEvidence(t, strings.NewReplacer(" ", "-", "µ", "u").Replace(c.name), e)
		})
	}
}
