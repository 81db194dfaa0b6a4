package cuda

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// What an H200 showed of kernels in a Python package is judged as it was.
func TestTritonPackageRecorded(t *testing.T) {
	for _, k := range packageKernels {
		if v := judgeRecorded(t, "tritonpkg/"+k.name+"-faster", packagePolicy); v.Outcome != gates.Pass {
			t.Errorf("%s, faster: %s (%s): %s", k.name, v.Outcome, v.Reason, v.Summary)
		}
		if v := judgeRecorded(t, "tritonpkg/"+k.name+"-wrong", packagePolicy); v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness && v.Reason != gates.ReasonBuild {
			t.Errorf("%s, wrong: %s (%s): %s", k.name, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// So is what it showed of references in Python.
func TestPythonReferenceRecorded(t *testing.T) {
	for name, want := range map[string]gates.Outcome{
		"numpy": gates.Pass, "numpy-wrong": gates.Defer, "torch": gates.Pass, "torch-on-the-gpu": gates.Pass,
		"torch-on-the-gpu-wrong": gates.Defer, "expression": gates.Pass, "raises": gates.Error,
	} {
		if v := judgeRecorded(t, "pyref/"+name, policyText); v.Outcome != want {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// So are public kernels, an honest and a broken branch of each.
func TestUpstreamRecorded(t *testing.T) {
	for _, name := range []string{"saxpy", "transpose", "stencil", "adjust", "rmsnorm", "silu", "softmax", "rms_norm"} {
		if v := judgeRecorded(t, "upstream/"+name+"-honest", upstreamPolicy); v.Outcome != gates.Pass {
			t.Errorf("%s, honest: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
		if v := judgeRecorded(t, "upstream/"+name+"-broken", upstreamPolicy); v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness {
			t.Errorf("%s, broken: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// So is the energy of equal sides, of half of the work, and of stages of the attention kernel: one that takes less, and one whose
// interval reaches the limit on a small problem.
func TestEnergyRecorded(t *testing.T) {
	stages := readText(t, "../../../kernels/sdpa_fp8/energy.yaml")
	for _, c := range []struct {
		name, policy string
		status       gates.Status
		low, high    float64
	}{
		{"equal-sides", energyPolicy, gates.Passed, -0.03, 0.03},
		{"half-of-the-work", energyPolicy, gates.Passed, -0.6, -0.2},
		{"stage6_fp8", stages, gates.Passed, -0.1, -0.05},
		{"num_stages", stages, gates.Open, -0.03, 0.03},
	} {
		v := judgeRecorded(t, "energy/"+c.name, c.policy)
		if len(v.Energy) == 0 || v.Energy[0].Status != c.status || v.Energy[0].Change < c.low || v.Energy[0].Change > c.high {
			t.Errorf("%s: %s (%s): %s: %+v", c.name, v.Outcome, v.Reason, v.Summary, v.Energy)
		}
	}
}
