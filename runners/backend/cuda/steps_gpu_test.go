package cuda

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const stepsPolicy = `version: 1
gates:
  ptxas: {registers: "<= 128", spill_stores: "<= 0B"}
  correctness: {shapes: all, seeds: [0, 1], distributions: [normal, uniform], secret_cases: 3, norm_error: "<= 0.1%", determinism: true}
  performance:
    target: {shapes: [mission], speedup: ">= +20%"}
    guard: {shapes: all, speedup: ">= -80%"}
    rounds: {min: 6, max: 12}
    pairs: 10
    control: 5%
    solo_shift: 20%
rules:
  - name: default
`

const combining = "    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H]}\n"

// stepsTried are launches of several kernels with scratch between them: what is right and faster passes, and what counts on
// anything that a launch does not find is seen.
var stepsTried = []struct {
	name    string
	pull    pull
	outcome gates.Outcome
	reason  gates.Reason
	says    string
}{
	{"splits-16", pull{manifest: splits("16")}, gates.Pass, "", ""},
	{"cooperative", pull{manifest: append(splits("16"), cooperative...), file: "cooperative.cu"}, gates.Pass, "", ""},
	{"combine-left-out", pull{manifest: append(splits("16"), combining, "    - {entry: combine, grid: [1], block: [64], args: [partial, lse, o, H]}\n")}, gates.Defer, gates.ReasonCorrectness, "elements were never written"},
	{"only-set", pull{manifest: append(splits("16"), combining, "    - {memset: o}\n")}, gates.Defer, gates.ReasonCorrectness, "norm error"},
	// The last block to come combines. The counter that tells is never set before the launch.
	{"counts-on-zeros", lastBlock(false), gates.Defer, gates.ReasonCorrectness, ""},
	{"counter-set", lastBlock(true), gates.Pass, "", ""},
	// It tells what the counter began with from its neighbour, as if both were the same poison.
	{"counts-on-poison", countingOn(), gates.Defer, gates.ReasonCorrectness, ""},
	// What the first launch finds is kept in scratch for the others.
	{"remembers-in-scratch", remembering(), gates.Defer, gates.ReasonTooSlow, "Too slow"},
	{"writes-beside-scratch", pull{manifest: splits("16"), source: []string{"    if (d == 0)\n", "    if (part == 0 && h == 0)\n        partial[(size_t)SPLITS * H * D + d] = 0;\n    if (d == 0)\n"}},
		gates.Defer, gates.ReasonCorrectness, "the kernel wrote outside its arguments"},
	{"grid-too-large", pull{manifest: append(append(splits("16"), cooperative...), "cooperative: true, grid: [SPLITS, H]", "cooperative: true, grid: [SPLITS, 16*H, 64]"), file: "cooperative.cu"},
		gates.Defer, gates.ReasonCorrectness, "the cooperative launch of decode_grid has"},
}

// Evidence is left in the folder that KERNELGATE_GPU_EVIDENCE names.
func TestStepsOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	for _, c := range stepsTried {
		t.Run(c.name, func(t *testing.T) {
			c.pull.policy, c.pull.timeout = stepsPolicy, 5*time.Second
			e, v := c.pull.gather(t)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s %s\nwant %s (%s): …%s…", v.Outcome, v.Reason, v.Summary, e.Fault, c.outcome, c.reason, c.says)
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			keepEvidence(t, c.name, e)
		})
	}
}

// What an H200 showed is judged as it was.
func TestStepsRecorded(t *testing.T) {
	for _, c := range stepsTried {
		t.Run(c.name, func(t *testing.T) {
			v := judgeRecorded(t, "steps/"+c.name, stepsPolicy)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s\nwant %s (%s): …%s…", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says)
			}
		})
	}
}

// judgeRecorded judges evidence that an H200 gave.
func judgeRecorded(t *testing.T, name, policyYAML string) *gates.Verdict {
	t.Helper()
	_, v := recorded(t, name, policyYAML)
	return v
}

func recorded(t *testing.T, name, policyYAML string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	file := filepath.Join("testdata", "h200", name+".json")
	e, err := gates.ParseEvidence(file, []byte(readText(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	if e.Device.Name != "NVIDIA H200" {
		t.Errorf("%s was measured on %s", file, e.Device.Name)
	}
	return e, gates.Judge(parsePolicy(t, policyYAML), "test.yaml", e)
}

func parsePolicy(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keepEvidence writes what was gathered for whoever asked for it.
func keepEvidence(t *testing.T, name string, e *gates.Evidence) {
	t.Helper()
	folder := os.Getenv("KERNELGATE_GPU_EVIDENCE")
	if folder == "" {
		return
	}
	text, err := json.Marshal(e)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".json"), text, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// lastBlock has the last block of a head combine, and set the counter back for the next launch. It
// works where scratch is zero once and survives, or where a step sets it.
func lastBlock(set bool) pull {
	step := "    - {entry: \"decode::split<64>\", grid: [SPLITS, H], block: [64], args: [q, k, v, partial, lse, H, S, scale, o, done]}\n"
	if set {
		step = "    - {memset: done}\n" + step
	}
	return pull{
		manifest: append(splits("16"),
			"    - {entry: \"decode::split<64>\", grid: [SPLITS, H], block: [64], args: [q, k, v, partial, lse, H, S, scale]}\n    - {entry: combine, grid: [H], block: [64], args: [partial, lse, o, H]}\n", step,
			"scratch:\n", "scratch:\n  - {name: done, dtype: u32, shape: [H]}\n"),
		source: []string{
			"int H, int S, float scale)", "int H, int S, float scale, float *o, unsigned *done)",
			"        lse[part * H + h] = sum > 0 ? most + logf(sum) : -CUDART_INF_F;\n}\n", `        lse[part * H + h] = sum > 0 ? most + logf(sum) : -CUDART_INF_F;
    __threadfence();
    __shared__ unsigned before;
    __syncthreads();
    if (d == 0)
        before = atomicAdd(&done[h], 1);
    __syncthreads();
    if (before != SPLITS - 1)
        return;
    __threadfence();
    most = -CUDART_INF_F, sum = 0, out = 0;
    for (int p = 0; p < SPLITS; p++)
        most = fmaxf(most, __ldcg(&lse[p * H + h]));
    for (int p = 0; p < SPLITS; p++) {
        const float weight = __expf(__ldcg(&lse[p * H + h]) - most);
        sum += weight;
        out += weight * __ldcg(&partial[((size_t)p * H + h) * D + d]);
    }
    o[h * D + d] = out / sum;
    if (d == 0)
        done[h] = 0;
}
`,
		},
	}
}

// countingOn is lastBlock with a counter that begins with whatever the element behind it is.
func countingOn() pull {
	p := lastBlock(false)
	p.manifest = append(p.manifest, "{name: done, dtype: u32, shape: [H]}", "{name: done, dtype: u32, shape: [H + 1]}")
	p.source = append(p.source, "before != SPLITS - 1", "before - done[H] != SPLITS - 1", "        done[h] = 0;\n", "        done[h] = done[H];\n")
	return p
}

// remembering keeps inputs and results in scratch and would be fast if it found them again.
func remembering() pull {
	return pull{
		manifest: []string{
			"scratch:\n", "scratch:\n  - {name: seen, dtype: f32, shape: [H, 4]}\n",
			"args: [q, k, v, partial, lse, H, S, scale]", "args: [q, k, v, partial, lse, H, S, scale, seen]",
			"args: [partial, lse, o, H]", "args: [partial, lse, o, H, q, seen]",
		},
		source: []string{
			"int H, int S, float scale)", "int H, int S, float scale, const float *seen)",
			"    const float mine =", "    if (seen[4 * h] == 1 && seen[4 * h + 1] == q[h * D])\n        return;\n    const float mine =",
			"float *o, int H)", "float *o, int H, const float *q, float *seen)",
			"    o[h * D + d] = out / sum;\n", "    o[h * D + d] = out / sum;\n    if (d == 0) {\n        seen[4 * h] = 1;\n        seen[4 * h + 1] = q[h * D];\n    }\n",
		},
	}
}
