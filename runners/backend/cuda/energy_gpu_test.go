package cuda

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

const energyPolicy = `version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], secret_cases: 1, norm_error: "<= 0.1%"}
  energy: {increase: "<= +5%", shapes: [mission]}
rules:
  - name: default
`

// remembers keeps inputs and outputs of its last launch, and does no work if the inputs are the same again.
const remembers = `__device__ float seen[1 << 20], done[1 << 20];
` + `extern "C" __global__ void scale(const float *x, float *y, int N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N) return;
    if (i < 1 << 20 && seen[i] == x[i] && done[i] != 0) { y[i] = done[i]; return; }
    float v = x[i], one = 1 + 1e-30f * x[0], zero = 1e-30f * x[0];
    for (int k = 0; k < 400; k++) v = fmaf(v, one, zero);
    y[i] = x[i] + v;
    if (i < 1 << 20) { seen[i] = x[i]; done[i] = y[i]; }
}
`

// Energy shows what is different, and nothing where both sides are equal; work that a launch saves for equal inputs does not count.
func TestEnergyOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	half := strings.Replace(baselineBody, "k < 400", "k < 200", 1)
	for _, c := range []struct {
		name, candidate string
		low, high       float64 // of the change
	}{
		{"equal sides", around(baselineBody), -0.03, 0.03},
		{"half of the work", around(half), -0.6, -0.2},
		{"twice the work", around(strings.Replace(baselineBody, "k < 400", "k < 800", 1)), 0.4, 1.5},
		{"remembers its inputs", remembers, -0.03, 2},
		{"returns if there is an output", around("    if (i < N && y[i] == 2 * x[i]) return;\n" + baselineBody), -0.06, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := trial{policy: energyPolicy, baseline: around(baselineBody), candidate: c.candidate}.backend(t)
			e := b.job.NoEvidence()
			e.Device = b.Device()
			shape, _ := b.job.Manifest.Shape("mission")
			e.Shapes = []gates.Shape{{Name: "mission", Dims: shape.Dims.String()}}
			for role, side := range map[runners.Role]runners.Side{runners.Baseline: *b.job.Baseline, runners.Candidate: b.job.Candidate} {
				built, err := b.Build(t.Context(), role, side)
				if err != nil || !built.OK {
					t.Fatalf("%s: %v %s", role, err, built.Error)
				}
				if role == runners.Baseline {
					e.Baseline = &built
				} else {
					e.Candidate = &built
				}
			}
			rule := b.job.Rule()
			correct, err := b.Correctness(t.Context(), rule.Gates.Correctness, silent{})
			if err != nil {
				t.Fatal(err)
			}
			e.Correctness = correct
			if e.Energy, err = b.Energy(t.Context(), rule.Gates.Energy, silent{}); err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(b.job.Policy, "test.yaml", e)
			if len(v.Energy) == 0 {
				t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			for _, r := range v.Energy {
				t.Logf("%s: %.4g → %.4g mJ, %+.2f %% [%+.2f, %+.2f], %s", r.Source, 1e3*r.Baseline, 1e3*r.Candidate, 100*r.Change, 100**r.Lower, 100**r.Upper, r.Status)
			}
			if change := v.Energy[0].Change; change < c.low || change > c.high {
				t.Errorf("a change of %+.3f, want %v to %v", change, c.low, c.high)
			}
			keepEvidence(t, strings.ReplaceAll(c.name, " ", "-"), e)
		})
	}
}
