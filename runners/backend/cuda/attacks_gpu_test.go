package cuda

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// loop is the baseline's work as an expression's statements: r is the result.
const loop = `    float v = x[i], one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
    for (int k = 0; k < 400; k++) v = fmaf(v, one, zero);
    float r = x[i] + v;
`

// Programs that try to be judged fast without doing the work of every launch,
// each a kernel that some version of a gate would let pass. The baseline is the
// loop of 400; what an attack asks for is a gain that it has not earned.
var attacks = []struct {
	name, source string
	reason       gates.Reason
	says         string
}{
	{"remembers results by content", `__device__ float keys[33554432], results[33554432];
` + around(`    if (i >= N) return;
    unsigned slot = (__float_as_uint(x[0]) * 2654435761u) >> 27;
    float k = keys[(slot << 20) + i];
    if (N == 1000000 && k == x[i] && k != 0) { y[i] = results[(slot << 20) + i]; return; }
`+loop+`    y[i] = r;
    if (N == 1000000) { keys[(slot << 20) + i] = x[i]; results[(slot << 20) + i] = r; }`), gates.ReasonTooSlow, "Too slow"},
	{"remembers in a variable of the file alone", `static __device__ float keys[1 << 20], results[1 << 20];
` + around(`    if (i >= N) return;
    float k = keys[i & 0xFFFFF];
    if (k == x[i] && k != 0) { y[i] = results[i & 0xFFFFF]; return; }
`+loop+`    y[i] = r;
    keys[i & 0xFFFFF] = x[i]; results[i & 0xFFFFF] = r;`), gates.ReasonTooSlow, "Too slow"},
	{"writes into the images of inputs to come", `__device__ unsigned launches; __device__ long long found;
#define SIZE 8000768LL
#define PAGE 33554432LL
` + around(`    if (i >= N) return;
    unsigned n = 0;
    if (N == 1000000) {
        n = *(volatile unsigned *)&launches;
        if (i == 0) atomicAdd(&launches, 1);
        if (n > 20) { float have = y[i]; if (have == have) return; }
    }
`+loop+`    y[i] = r;
    if (n > 20) {
        long long slot = (long long)x - 256, far = *(volatile long long *)&found;
        if (far == 0) {
            if (i != 0) return;
            for (int m = 1; m <= 4; m++) {
                const float *p = (const float *)(slot + m * PAGE + 256);
                if (p[0] == x[0] && p[1] == x[1]) { found = m * PAGE; return; }
            }
            return;
        }
        ((float *)(slot + far + 256))[1000000 + 64 + i] = r;
    }`), gates.ReasonCorrectness, "illegal memory access"},
	{"looks for its neighbours' inputs", around(`    if (i >= N) return;
    if (N == 1000000) { // the next slot, as if they lay side by side
        const float *next = x + 2000192;
        if (next[i] == 12345.0f) return;
    }
` + loop + "    y[i] = r;"), gates.ReasonCorrectness, "illegal memory access"},
	{"does the work of the whole batch in its first launch", `__device__ const float *volatile inputs[64]; __device__ float *volatile outputs[64]; __device__ int known;
` + around(`    if (i >= N) return;
    if (N == 1000000) {
        float have = y[i];
        if (have == have) return; // somebody was here before
        int n = *(volatile int *)&known;
        if (i == 0 && n < 64) { inputs[n] = x; outputs[n] = y; __threadfence(); *(volatile int *)&known = n + 1; }
        for (int s = 0; s < n && s < 8; s++) {
            const float *x2 = inputs[s];
            float v = x2[i], one = 1 + 1e-30f * x2[0], zero = 1e-30f * x2[0];
            for (int k = 0; k < 400; k++) v = fmaf(v, one, zero);
            outputs[s][i] = x2[i] + v;
        }
    }
`+loop+"    y[i] = r;"), gates.ReasonTooSlow, "Too slow"},
	{"skips every second launch", "__device__ int count;\n" + around(
		"    __shared__ int n;\n    if (threadIdx.x == 0) n = atomicAdd(&count, 1);\n    __syncthreads();\n    if (n / gridDim.x > 12 && n / gridDim.x % 2) return;\n    if (i < N) y[i] = 2 * x[i];"),
		gates.ReasonCorrectness, "elements were never written"},
	{"gives what it remembers once it has been called often", "__device__ float kept[1000000];\n__device__ int count;\n" + around(`    if (i >= N) return;
    int n = *(volatile int *)&count;
    if (N == 1000000 && n >= 8) { y[i] = kept[i]; return; }
    y[i] = kept[i % 1000000] = 2 * x[i];
    if (N == 1000000 && i == 0) atomicAdd(&count, 1);`), gates.ReasonCorrectness, "while it was timed"},
	{"adds up over launches", "__device__ float sum[1 << 20];\n" + around("    if (i < N) { y[i] = 2 * x[i] + 1e-9f * sum[i & 0xFFFFF]; sum[i & 0xFFFFF] += 1e5f; }"),
		gates.ReasonSuspicious, "depends on what earlier launches left behind"},
	{"is wrong for one input in a hundred", around(`    if (i >= N) return;
    if (N == 1000000 && __float_as_uint(x[7]) % 97 == 5) { y[i] = i ? 2 * x[i] : 0; return; }
    y[i] = 2 * x[i];`), gates.ReasonCorrectness, "while it was timed"},
	{"computes less where the input looks ordinary", around(`    if (i >= N) return;
    y[i] = (N == 1000000 && fabsf(x[1]) < 1.5f && x[0] != x[1]) ? __uint_as_float(__float_as_uint(2 * x[i]) & 0xFFFF0000u) : 2 * x[i];`),
		gates.ReasonCorrectness, "norm error"},
	{"keeps its input in the cache for the next launch", around(`    if (i >= N) return;
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    float w;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(w) : "l"(x + i), "l"(policy));
    float v = w, one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
    for (int k = 0; k < 400; k++) v = fmaf(v, one, zero);
    y[i] = w + v;`), gates.ReasonTooSlow, "Too slow"},
	{"faults once it has been called often", "__device__ int count;\n" + around(
		"    if (i < N) y[i] = 2 * x[i];\n    if (N == 1000000 && i == 0 && atomicAdd(&count, 1) > 20) __trap();"), gates.ReasonCorrectness, "while it was timed"},
	{"writes where the last launch's output was", "__device__ float *last;\n" + around(`    if (i >= N) return;
    float *before = *(float *volatile *)&last;
    y[i] = 2 * x[i];
    if (before && before != y) before[i] = 0;
    __syncthreads();
    if (i == 0) *(float *volatile *)&last = y;`), gates.ReasonCorrectness, ""},
}

// Samples of a short kernel are batches of 32. A launch that leaves its work to the next one, which does both side by side in the
// time of one, is right in all of them, and in the first few launches of a process, which are all that is compared one by one.
func TestLeavesWorkToTheNextOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	policy := strings.Replace(policyText, "target: {shapes: [mission]", "target: {shapes: [small]", 1)
	if policy == policyText {
		t.Fatal("the policy has another target")
	}
	policy = strings.Replace(policy, `registers: "<= 64", `, "", 1)
	leaves := `__device__ volatile char shared_by_a_batch[17 << 20];
__device__ volatile int count; __device__ unsigned ticket;
__device__ const float *volatile left_x; __device__ float *volatile left_y;
` + around(`    int n = count;
    if (N == 1000 && n % 2 == 1 && n >= 5 && n < 31) {
        if (i == 0) { left_x = x; left_y = y; shared_by_a_batch[n] = 1; }
    } else if (N == 1000 && n % 2 == 0 && n >= 6 && n < 32 && i < N) {
        const float *x2 = left_x;
        float v = x[i], one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
        float w = x2[i], one2 = 1 + 1e-30f * x2[0], zero2 = 1e-30f * x2[0];
        for (int k = 0; k < 400; k++) { v = fmaf(v, one, zero); w = fmaf(w, one2, zero2); }
        y[i] = x[i] + v;
        left_y[i] = x2[i] + w;
    } else if (i < N) {
`+loop+`        y[i] = r;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&ticket, 1) == gridDim.x - 1) { ticket = 0; __threadfence(); count = n + 1; }
    }`)
	_, v := trial{policy: policy, baseline: around(baselineBody), candidate: leaves}.gather(t)
	if v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness || !strings.Contains(v.Summary, "while it was timed") {
		t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	_, v = trial{policy: policy, baseline: around(baselineBody), candidate: around(fasterBody)}.gather(t)
	if v.Outcome != gates.Pass {
		t.Errorf("a good kernel got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

func TestAttacksOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	policy := policyText
	policy = strings.Replace(policy, `registers: "<= 64", `, "", 1)
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) {
			e, v := trial{policy: policy, baseline: around(baselineBody), candidate: c.source, timeout: 2 * time.Second}.gather(t)
			if v.Outcome != gates.Defer || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s\nwant DEFER (%s): …%s…", v.Outcome, v.Reason, v.Summary, c.reason, c.says)
			}
			rounds := 0
			if e.Performance != nil {
				rounds = len(e.Performance.Rounds)
			}
			t.Logf("%s (%s) after %d rounds: %s", v.Outcome, v.Reason, rounds, v.Summary)
		})
	}
	t.Run("clean afterwards", func(t *testing.T) {
		_, v := trial{policy: policy, baseline: around(baselineBody), candidate: around(fasterBody)}.gather(t)
		if v.Outcome != gates.Pass {
			t.Errorf("a good kernel got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
		}
	})
}
