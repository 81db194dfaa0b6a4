package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
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
	for _, k := range upstreamKernels {
		name := k.name
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

// TestHacksRecorded judges what an H200 gathered of the reward hacks again.
func TestHacksRecorded(t *testing.T) {
	for i, c := range hacks {
		v := judgeRecorded(t, "hacks/"+hackFile(c.name), hackTrial(t, i).policy)
		if why := hackMissed(c.reasons, c.says, v); why != "" {
			t.Errorf("%s: %s", c.name, why)
		}
	}
}

// TestWarmRecorded judges what an H200 measured from a cold and a warm cache again. The clock is coarse for a launch of 6 µs.
func TestWarmRecorded(t *testing.T) {
	v := judgeRecorded(t, "warm", warmPolicy)
	if v.Outcome != gates.Pass || len(v.Comparisons) != 4 {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// TestWeightsRecorded judges the weighted speedups of weights.py again, and compares them with the measured changes of whole steps.
// The rounds have decode from a warm cache alone, and a goal asks for cold launches, too. So the test makes one sum of what is there.
func TestWeightsRecorded(t *testing.T) {
	const rules = "version: 1\ngates:\n  correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: '<= 1%'}\n" +
		"  performance: {target: {weighted: '>= +1%'}, rounds: {min: 6, max: 20}}\nrules: [{name: default}]\n"
	said := readText(t, "testdata/h200/weights.txt")
	for warps, agrees := range map[string]bool{"4": true, "8": true, "1": false} {
		e, v := recorded(t, "weights/warps-"+warps, rules)
		if v.Outcome != gates.Defer || !strings.Contains(v.Summary, "too few clean samples") {
			t.Errorf("%s, without cold launches: %s: %s", warps, v.Outcome, v.Summary)
		}
		warmAlone(e, "decode")
		v = gates.Judge(parsePolicy(t, rules), "test.yaml", e)
		if v.Outcome != gates.Pass || v.Weighted == nil {
			t.Errorf("%s: %s: %s", warps, v.Outcome, v.Summary)
			continue
		}
		_, line, _ := strings.Cut(said, "WARPS="+warps+": ")
		var value, lower, upper, change, low, high float64
		if _, err := fmt.Sscanf(line, "PASS, saves %f us per step [%f, %f]; measured %f us [%f, %f]:", &value, &lower, &upper, &change, &low, &high); err != nil {
			t.Errorf("%s: %v: %.80s", warps, err, line)
		}
		saved := v.Weighted.Saved
		if math.Abs(saved.Value-value) > 0.1 || (low <= *saved.Upper && *saved.Lower <= high) != agrees {
			t.Errorf("%s: saves %v [%v, %v], and %s", warps, saved.Value, *saved.Lower, *saved.Upper, strings.SplitN(line, "\n", 2)[0])
		}
	}
}

// warmAlone takes the warm launches of a shape for those that a weighted goal counts.
func warmAlone(e *gates.Evidence, shape string) {
	warm := gates.Shape{Name: shape}.In(policy.Warm).Name
	e.Weights.Warm = nil
	e.Shapes = slices.DeleteFunc(e.Shapes, func(s gates.Shape) bool { return s.Name == warm })
	for _, round := range e.Performance.Rounds {
		for i, s := range round.Series {
			if s.Shape == warm {
				round.Series[i].Shape = shape
			}
		}
	}
}
