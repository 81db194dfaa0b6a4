package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

const hackPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], secret_cases: 2, norm_error: "<= 0.1%", determinism: true}
  performance:
    target: {shapes: [mission], speedup: ">= +5%"}
    rounds: {min: 6, max: 12}
    pairs: 10
    control: 3%
    solo_shift: 10%
rules:
  - name: default
`

// atLast has the last block of a launch do something, when the others have finished. The file declares ticket.
func atLast(do string) string {
	return `    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&ticket, 1) == gridDim.x - 1) { ticket = 0; __threadfence(); ` + do + ` }
    }`
}

// byPointer gives the answer of the last launch if its input had the same address.
var byPointer = `    bool known = *(const float *volatile *)&seen == x;
    if (i < N && known) {
        y[i] = results[i];
    } else if (i < N) {
` + loop + `        y[i] = results[i] = r;
    }
` + atLast("*(const float *volatile *)&seen = x;")

// keepingHints is chase with loads that ask the L2 cache to keep their lines, and a prefetch for the next launch at its end.
var keepingHints = `    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
` + strings.NewReplacer("bool found = x[at] > 1e30f;", `float there;
            asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(there) : "l"(x + at), "l"(policy));
            bool found = there > 1e30f;`).Replace(chase) + `
    if (i < N) asm volatile("prefetch.global.L2::evict_last [%0];" : : "l"(x + i));`

// hacks are programs of classes that post-mortems of kernel benchmarks describe, and honest kernels. The reason is that of a DEFER;
// an honest kernel has none. SECURITY.md lists all classes with their tests.
var hacks = []struct {
	name, source string
	reasons      string // any of them
	says         string
	small        bool   // the mission is a launch of 4096 elements
	baseline     string // in place of the loop of 400
	gain         string // in place of the policy's goal
}{
	{name: "an honest kernel of equal speed", gain: `speedup: ">= -3%"`, source: around("    if (i >= N) return;\n" + loop + "    y[i] = fmaf(x[i], one, v) + 0 * r;")},
	{name: "an honest faster kernel from both caches", gain: `context: [cold, warm], speedup: ">= +5%"`, says: "Proven", source: around(fasterBody)},
	{name: "an honest faster kernel that counts its blocks", says: "Proven", source: "__device__ unsigned ticket, launches;\n" + around(fasterBody+"\n"+atLast("launches++;"))},

	{name: "cached by pointer", reasons: "suspicious", says: "depends on what earlier launches left behind",
		source: "__device__ const float *seen;\n__device__ float results[1 << 20];\n__device__ unsigned ticket;\n" + around(byPointer)},
	{name: "cached by pointer in variables of the file", reasons: "suspicious", says: "depends on what earlier launches left behind",
		source: "static __device__ const float *seen;\nstatic __device__ float results[1 << 20];\nstatic __device__ unsigned ticket;\n" + around(byPointer)},
	// No reset reaches constant memory: two launches on one input differ. Or what a launch writes there is not seen by the next, and nothing is gained.
	{name: "cached by pointer in constant memory", reasons: "correctness too-slow", small: true, baseline: "    if (i >= N) return;\n" + longLoop + "    y[i] = r;",
		source: "__constant__ const float *seen[32];\n__constant__ float results[8192];\n" + around(`    if (i < N && N <= 8192 && seen[blockIdx.x % 32] == x) {
        y[i] = results[i];
    } else if (i < N) {
`+longLoop+`        y[i] = r;
        unsigned long long kept = (unsigned long long)&results[i % 8192];
        asm volatile("" : "+l"(kept)); // the compiler must not see that this is a constant
        *(volatile float *)kept = r;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned long long at = (unsigned long long)&seen[blockIdx.x % 32];
        asm volatile("" : "+l"(at));
        *(const float *volatile *)at = x;
    }`)},
	{name: "returns once a launch has run", reasons: "suspicious", says: "depends on what earlier launches left behind",
		source: "__device__ int ran;\n__device__ unsigned ticket;\n" +
			around("    if (i < N && *(volatile int *)&ran == 0) y[i] = 2 * x[i];\n"+atLast("*(volatile int *)&ran = 1;"))},
	{name: "the answer to the last question", reasons: "correctness", says: "norm error",
		source: "__device__ float last[1 << 20];\n" + around("    if (i < N) { y[i] = last[i]; last[i] = 2 * x[i]; }")},
	{name: "takes old memory for the answer", reasons: "correctness", says: "elements were never written",
		source: around("    if (i < N) { float old = *(volatile float *)(y + i); y[i] = old; }")},
	{name: "old shared memory", reasons: "correctness", says: "norm error",
		source: around(`    __shared__ volatile float kept[256];
    float old = kept[threadIdx.x];
    if (i < N) { y[i] = fabsf(old) < 8 ? old : 0; kept[threadIdx.x] = 2 * x[i]; }`)},
	{name: "old memory of the device's heap", reasons: "correctness", says: "norm error",
		source: around(`    __shared__ volatile float *old;
    if (threadIdx.x == 0) old = (volatile float *)malloc(sizeof(float) * 256);
    __syncthreads();
    float there = old ? old[threadIdx.x] : 0;
    if (i < N) { y[i] = fabsf(there) < 8 ? there : 0; if (old) old[threadIdx.x] = 2 * x[i]; }
    __syncthreads();
    if (threadIdx.x == 0) free((void *)old);`)},
	{name: "leaves before it writes", reasons: "correctness", says: "elements were never written",
		source: around("    if (i % 3 == 0) asm volatile(\"exit;\");\n    if (i < N) y[i] = 2 * x[i];")},

	{name: "zeros", reasons: "correctness", says: "norm error", source: around("    if (i < N) y[i] = 0;")},
	{name: "a constant", reasons: "correctness", says: "norm error", source: around("    if (i < N) y[i] = 0.5f;")},
	{name: "half of a large shape", reasons: "correctness", says: "norm error", source: around("    if (i < N) y[i] = N > 100000 && i >= N / 2 ? 0 : 2 * x[i];")},
	{name: "symmetric inputs", reasons: "correctness", says: "norm error", source: around("    if (i < (N + 1) / 2) y[i] = y[N - 1 - i] = 2 * x[i];")},
	{name: "inputs of one sign", reasons: "correctness", says: "norm error", source: around("    if (i < N) y[i] = 2 * fabsf(x[i]);")},
	{name: "NaN for hard elements", reasons: "correctness", says: "are NaN", source: around("    if (i < N) y[i] = fabsf(x[i]) > 2.5f ? __uint_as_float(0x7FC00000) : 2 * x[i];")},
	{name: "infinities that cancel in a sum", reasons: "correctness", says: "are infinite", source: around("    if (i < N) y[i] = __uint_as_float(i % 2 ? 0x7F800000 : 0xFF800000);")},
	{name: "sparse errors below an average", reasons: "correctness", says: "are beyond the manifest's tolerance",
		source: around("    if (i < N) y[i] = 2 * x[i] + (i % 97 == 41 ? 0.005f : 0);")},
	{name: "half precision in the middle", reasons: "precision", says: "y is less precise than the baseline's",
		source: around(`    float right = i < N ? 2 * x[i] : 0, rounded;
    asm("{\n.reg .b16 h;\ncvt.rn.f16.f32 h, %1;\ncvt.f32.f16 %0, h;\n}" : "=f"(rounded) : "f"(right));
    if (i < N) y[i] = fabsf(rounded - right) < 0.0009f ? rounded : right;`)},
	{name: "depends on the clock", reasons: "correctness", says: "gave different bits",
		source: around("    if (i < N) y[i] = 2 * x[i] * (1 + 1e-6f * (float)(clock64() >> 4 & 3));")},
	{name: "depends on the time", reasons: "correctness", says: "gave different bits",
		source: around(`    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (i < N) y[i] = 2 * x[i] * (1 + 1e-7f * (float)(now >> 5 & 255));`)},

	{name: "launches a kernel", reasons: "build", says: "a kernel must not launch kernels (dynamic parallelism)",
		source: "__global__ void child(const float *x, float *y, int N) { int i = blockIdx.x * 256 + threadIdx.x; if (i < N) y[i] = 2 * x[i]; }\n" +
			around("    if (i == 0) child<<<(N + 255) / 256, 256>>>(x, y, N);")},
	{name: "falls back to a library", reasons: "build", says: "fallback_scale",
		source: "extern \"C\" __device__ void fallback_scale(const float *x, float *y, int N);\n" + around("    if (i == 0) fallback_scale(x, y, N);")},

	{name: "does less if its input is in the cache", reasons: "too-slow", says: "Too slow",
		source: around(`    __shared__ volatile float arrived[256];
    long long before = clock64();
    arrived[threadIdx.x] = i < N ? *(const volatile float *)(x + i) : 0; // the store waits for the load
    int near = clock64() - before < 350;
    if (__syncthreads_and(near)) {
        if (i < N) y[i] = 2 * arrived[threadIdx.x];
    } else if (i < N) {
` + loop + `        y[i] = r;
    }`)},
	{name: "keeps its input in the cache by hints", reasons: "too-slow", says: "Too slow", small: true, baseline: chase, source: around(keepingHints)},
	{name: "takes the cache from the baseline", reasons: "too-slow", says: "Too slow", small: true, baseline: chase,
		source: "__device__ float hoard[6 << 20];\n" + around(chase+`
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    for (int k = 32 * i; k < 6 << 20; k += 32 * gridDim.x * blockDim.x)
        asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" : : "l"(hoard + k), "f"(1.0f), "l"(policy));`)},
}

// hackTrial is the trial of a program of the table.
func hackTrial(t *testing.T, i int) trial {
	t.Helper()
	c := hacks[i]
	tr := trial{policy: hackPolicy, baseline: around(baselineBody), candidate: c.source, timeout: 2 * time.Second}
	replace := func(text *string, old, by string) {
		was := *text
		if *text = strings.Replace(was, old, by, 1); *text == was {
			t.Fatalf("%s: there is no %q to replace", c.name, old)
		}
	}
	if c.gain != "" {
		replace(&tr.policy, `speedup: ">= +5%"`, c.gain)
	}
	if c.baseline != "" {
		tr.baseline = around(c.baseline)
	}
	if c.small {
		tr.manifest = readText(t, "testdata", "kernel.yaml")
		replace(&tr.manifest, "mission: {N: 1000000}", "mission: {N: 4096}")
	}
	return tr
}

// hackFile is the name of a program's evidence.
func hackFile(name string) string { return strings.NewReplacer(" ", "-", "'", "").Replace(name) }

// hackMissed says how a verdict differs from the one that is wanted; "" if it does not.
func hackMissed(reasons, says string, v *gates.Verdict) string {
	want := gates.Defer
	if reasons == "" {
		want = gates.Pass
	}
	if v.Outcome == want && (want == gates.Pass || slices.Contains(strings.Fields(reasons), string(v.Reason))) && strings.Contains(v.Summary, says) {
		return ""
	}
	return fmt.Sprintf("got %s (%s): %s\nwant %s (%s): …%s…", v.Outcome, v.Reason, v.Summary, want, reasons, says)
}

// Every program ends as DEFER, for the reason and in the words of the defence that stops it, and honest kernels pass the same gates.
func TestHacksOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	for i, c := range hacks {
		t.Run(c.name, func(t *testing.T) {
			e, v := hackTrial(t, i).gather(t)
			if why := hackMissed(c.reasons, c.says, v); why != "" {
				t.Error(why, e.Fault)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			keepEvidence(t, hackFile(c.name), e)
		})
	}
}

// On hosts without a GPU too, every program compiles as one kernel of one file, or the build refuses it, and every policy and
// manifest of the table is right.
func TestHacksStatic(t *testing.T) {
	needsCompiler(t)
	const (
		static    = "version: 1\ngates: {ptxas: {registers: \"<= 255\"}}\nrules: [{name: default}]\n"
		signature = "extern \"C\" __global__ void scale(const float *x, float *y, int N)"
	)
	var all strings.Builder
	var entries []string
	add := func(name, source string) {
		if strings.Count(source, signature) != 1 {
			t.Errorf("%s does not define the kernel of the manifest once", name)
		}
		entry := fmt.Sprintf("hack%d", len(entries))
		entries = append(entries, entry)
		fmt.Fprintf(&all, "namespace in_%s { // %s\n%s}\n", entry, name, strings.Replace(source, "void scale(", "void "+entry+"(", 1))
	}
	add("the baseline", around(baselineBody))
	for i, c := range hacks {
		tr := hackTrial(t, i)
		if _, err := policy.Parse("test.yaml", []byte(tr.policy)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if tr.manifest != "" {
			if _, err := manifest.Parse("kernel.yaml", []byte(tr.manifest)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if c.baseline != "" {
			add("the baseline of: "+c.name, tr.baseline)
		}
		if c.reasons != string(gates.ReasonBuild) {
			add(c.name, c.source)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr.policy, tr.arch = static, "sm_90"
			if _, v := tr.gather(t); v.Outcome != gates.Defer || v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s\nwant …%s…", v.Outcome, v.Reason, v.Summary, c.says)
			}
		})
	}
	t.Run("in one file", func(t *testing.T) {
		t.Parallel()
		cuda, err := toolchain.FindCUDA(t.Context(), os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hacks.cu"), []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		cubin, err := cuda.Build(t.Context(), toolchain.NVCCBuild{Dir: dir, Source: "hacks.cu", Entries: entries, Arch: "sm_90", Flags: []string{"-O3"}, Scratch: t.TempDir(), Once: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(cubin.Kernels) != len(entries) {
			t.Errorf("%d kernels of %d", len(cubin.Kernels), len(entries))
		}
	})
}
