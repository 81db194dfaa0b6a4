package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// The work of a launch: some 50 µs on 16 of the GPU's multiprocessors.
const longLoop = `    float v = x[i], one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
    for (int k = 0; k < 20000; k++) v = fmaf(v, one, zero);
    float r = x[i] + v;
`

// sharing is a kernel whose launches read the parameters of other launches in the driver's parameter memory, up to so many bytes
// beside their own, and compute so many of them on multiprocessors that would be idle; those then find their output written and
// return. One launch in so many does it. extra is what it also tries.
func sharing(window, neighbours, of int, extra string) string {
	return fmt.Sprintf(`#define WINDOW %d
#define OF %d
#define NEIGHBOURS %d
extern "C" __global__ void scale(const float *const __grid_constant__ px, float *const __grid_constant__ py, const __grid_constant__ int N)
{
    const float *x = px; float *y = py;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (N == 4096) {
        int g = blockIdx.x / 16;
        i = blockIdx.x %% 16 * blockDim.x + threadIdx.x;
        float have = y[i];
        if (__syncthreads_and(have == have)) return; // another launch has done it
        if (g > NEIGHBOURS) return;
        if (g > 0) {
            unsigned long long own = (unsigned long long)x;
            if (((own >> 21) * 0x9E3779B97F4A7C15ull >> 32) %% OF != 0) return;
            __shared__ unsigned long long found[256]; __shared__ int n; __shared__ unsigned long long pick;
            if (threadIdx.x == 0) { n = 0; pick = 0; }
            __syncthreads();
            unsigned long long at = (unsigned long long)&px & ~7ull;
            for (int k = threadIdx.x; k < 2 * WINDOW / 8; k += blockDim.x) {
                unsigned long long v = *(volatile unsigned long long *)(at - WINDOW + 8 * k);
                if (v != own && v > (0x1000ull << 32) && v < (0x5100ull << 32) && (v & 0x1fffff) == (own & 0x1fffff)) {
                    float there = *(volatile float *)(v + ((unsigned long long)y - own) + 4 * 4095);
                    if (!(there == there)) { int m = atomicAdd(&n, 1); if (m < 256) found[m] = v; }
                }
            }
            __syncthreads();
            int have = min(n, 256);
            for (int a = threadIdx.x; a < have; a += blockDim.x) { // the g-th smallest, each once
                int smaller = 0, first = 1;
                for (int b = 0; b < have; b++) {
                    int seen = 0;
                    for (int c = 0; c < b; c++) seen |= found[c] == found[b];
                    if (!seen && found[b] < found[a]) smaller++;
                    if (b < a && found[b] == found[a]) first = 0;
                }
                if (first && smaller == g - 1) pick = found[a];
            }
            __syncthreads();
            if (pick == 0) return;
            x = (const float *)pick; y = (float *)(pick + ((unsigned long long)y - own));
        }
%s
    }
    if (i >= N) return;
%s    y[i] = r;
}
`, window, of, neighbours, extra, longLoop)
}

// servesSingle notes the addresses that launches were given where nothing resets it, and computes at those that its own are not:
// a launch that runs alone has had the same address before.
const servesSingle = `        if (g == NEIGHBOURS) {
            __shared__ unsigned long long noted[64]; // what an earlier launch on this multiprocessor left
            unsigned long long own = (unsigned long long)px, other = 0;
            for (int k = 0; k < 64; k++)
                if (noted[k] != own && noted[k] > (0x1000ull << 32) && noted[k] < (0x5100ull << 32) && (noted[k] & 0x1fffff) == (own & 0x1fffff)) other = noted[k];
            __syncthreads();
            if (threadIdx.x == 0) noted[(own >> 21) % 64] = own;
            if (other == 0) return;
            x = (const float *)other; y = (float *)(other + ((unsigned long long)py - own));
        }
`

const singlePolicy = `version: 1
gates:
  correctness: {shapes: [small, mission], seeds: [0, 1], distributions: [normal, uniform], secret_cases: 4, norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +10%"}
    rounds: {min: 6, max: 12}
    pairs: 20
rules:
  - name: default
`

// What an H200 measured of kernels whose launches share work, and of an honest one, is judged as it should be.
func TestRecordedSharedWork(t *testing.T) {
	for name, want := range map[string]struct {
		outcome gates.Outcome
		says    string
	}{
		"gains-a-part-and-shares-a-part":   {gates.Defer, "single launches do not confirm it"},
		"answers-constant-inputs-at-once":  {gates.Defer, "counts for at most"},
		"an-honest-gain-of-3-us":           {gates.Pass, "Proven"},
		"an-honest-gain-in-120-kB-of-code": {gates.Pass, "Proven"},
		"neighbours-within-2-KiB":          {gates.Defer, "single launches do not confirm it"},
		"neighbours-within-16-KiB":         {gates.Defer, "launches of a batch share work"},
		"also-serves-the-lone-launch":      {gates.Defer, "launches of a batch share work"},
		"serves-three-neighbours":          {gates.Defer, "single launches do not confirm it"},
		"serves-one-neighbour":             {gates.Defer, "single launches do not confirm it"},
		"an-honest-gain":                   {gates.Pass, "Proven"},
	} {
		if v := judgeRecorded(t, filepath.Join("lone", name), singlePolicy); v.Outcome != want.outcome || !strings.Contains(v.Summary, want.says) {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		} else {
			t.Logf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// Launches of a batch that share work gain nothing alone: no gain passes that single launches do not show.
func TestSharedWorkOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.NewReplacer("mission: {N: 1000000}", "mission: {N: 4096}", `grid: ["ceildiv(N, 256)"]
  block: [256]
reference`, `grid: ["N == 4096 ? 128 : ceildiv(N, 256)"]
  block: [256]
reference`).Replace(string(text))
	honest := around("    if (i >= N) return;\n" + longLoop + "    y[i] = r;")
	faster := strings.Replace(honest, "k < 20000", "k < 16000", 1)
	for _, c := range []struct {
		name, source string
		outcome      gates.Outcome
		reasons      string
		says         string
	}{
		{"neighbours within 2 KiB", sharing(2048, 7, 1, ""), gates.Defer, "suspicious too-slow", ""},
		{"neighbours within 16 KiB", sharing(16384, 7, 1, ""), gates.Defer, "suspicious too-slow", ""},
		{"neighbours within 64 KiB", sharing(65536, 7, 1, ""), gates.Defer, "suspicious too-slow correctness", ""},
		{"also serves the lone launch", sharing(2048, 7, 1, servesSingle), gates.Defer, "suspicious too-slow correctness", ""},
		{"serves three neighbours", sharing(2048, 3, 1, ""), gates.Defer, "suspicious too-slow", ""},
		{"serves one neighbour", sharing(2048, 1, 1, ""), gates.Defer, "suspicious too-slow", ""},
		{"an honest gain", faster, gates.Pass, "", "Proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, v := trial{manifest: manifest, policy: singlePolicy, baseline: honest, candidate: c.source, timeout: 2 * time.Second}.gather(t)
			if v.Outcome != c.outcome || c.reasons != "" && !strings.Contains(" "+c.reasons+" ", " "+string(v.Reason)+" ") || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			if len(v.Comparisons) > 0 && v.Comparisons[0].Alone != nil {
				t.Logf("in a batch %+.1f %%, alone %+.1f %%", 100*v.Comparisons[0].Speedup.Value, 100*v.Comparisons[0].Alone.Value)
			}
			keepEvidence(t, strings.ReplaceAll(c.name, " ", "-"), e)
		})
	}
}
