package cuda

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

const packagePolicy = `version: 1
gates:
  ptxas: {registers: "<= 255"}
  correctness: {shapes: all, seeds: [0], secret_cases: 2, norm_error: "<= 1%"}
  performance:
    target: {shapes: [mission], speedup: ">= +2%"}
    rounds: {min: 6, max: 8}
    pairs: 8
    control: 5%
    solo_shift: 20%
rules:
  - name: default
`

// Kernels of a Python package pass with an honest change, and are refused where a mask is lost. Of the one whose configurations are
// all tried the fastest is picked, by each side for itself.
func TestTritonPackageOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	needsTriton(t)
	for i, k := range packageKernels {
		t.Run(k.name, func(t *testing.T) {
			faster := fasterTrial(i)
			faster.policy = packagePolicy
			e, v := faster.gather(t)
			t.Logf("faster: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			if v.Outcome != gates.Pass {
				t.Errorf("faster: got %s (%s), want PASS: %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			keepEvidence(t, k.name+"-faster", e)
			if k.name == "gated_delta" {
				checkPicks(t, e)
			}
			e, v = packageTrial{kernel: k.name, policy: packagePolicy, edit: &k.wrong}.gather(t)
			t.Logf("wrong: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness && v.Reason != gates.ReasonBuild {
				t.Errorf("wrong: got %s (%s), want DEFER: %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			keepEvidence(t, k.name+"-wrong", e)
		})
	}
}

// checkPicks looks at what the tuner has left: a time for every configuration at every shape, and the smallest picked.
func checkPicks(t *testing.T, e *gates.Evidence) {
	t.Helper()
	for _, side := range []struct {
		name    string
		build   *gates.Build
		offered int
	}{{"baseline", e.Baseline, 2}, {"candidate", e.Candidate, 4}} {
		if side.build == nil || side.build.Tuning == nil || len(side.build.Tuning.Picks) != 2 {
			t.Fatalf("the tuning of the %s is %+v", side.name, side.build)
		}
		for _, p := range side.build.Tuning.Picks {
			if len(p.Times) != side.offered {
				t.Errorf("%s at %s: %d configurations were timed, want %d", side.name, p.Shape, len(p.Times), side.offered)
			}
			for _, other := range p.Times {
				if other.Micros < p.Micros || p.Micros <= 0 {
					t.Errorf("%s at %s: picked is %s with %.2f µs, and %s takes %.2f µs", side.name, p.Shape, p.Configuration, p.Micros, other.Configuration, other.Micros)
				}
			}
			t.Logf("%s at %s: %+v", side.name, p.Shape, p.Times)
		}
	}
}
