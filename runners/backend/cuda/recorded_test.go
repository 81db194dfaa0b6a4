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
