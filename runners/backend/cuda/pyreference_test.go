package cuda

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// inPython is the test's manifest with a reference in Python.
func inPython(t *testing.T, reference string) string {
	t.Helper()
	if _, err := pyref.Find(t.Context(), os.Getenv); err != nil && os.Getenv("CI") == "" {
		t.Skipf("no Python with NumPy: %v", err)
	}
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "reference:\n")
	_, behind, _ := strings.Cut(rest, "tolerance:")
	return before + "reference: " + reference + "\ntolerance:" + behind
}

const pythonFile = "{source: reference.py, entry: double}"

// Without a GPU the reference computes a small shape: its mistakes show before anything is measured.
func TestPythonReferenceStatic(t *testing.T) {
	needsCompiler(t)
	const static = "version: 1\ngates:\n  ptxas: {registers: \"<= 32\"}\nrules:\n  - name: default\n"
	for name, c := range map[string]struct{ source, says string }{
		"right":             {"import numpy\n\ndef double(x, N):\n    return 2 * x\n", ""},
		"syntax":            {"def double(x):\n    return 2 *\n", "the reference reference.py of the base is not Python: invalid syntax (line 2)"},
		"another parameter": {"def double(x, size):\n    return 2 * x\n", "the reference reference.py of the base takes size, which the manifest does not have (it has x, y, N) (line 1)"},
		"another shape":     {"def double(x):\n    return x[:-1]\n", "the reference reference.py of the base returns y of shape [999], and the manifest's is [1000] (line 1)"},
		"NaN":               {"import numpy as np\ndef double(x):\n    return np.log(-np.abs(x) - 1)\n", "the reference reference.py of the base returns NaN in y for finite inputs on small (N=1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := trial{manifest: inPython(t, pythonFile), policy: static, baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_90", python: c.source}.backend(t)
			e, err := gather.Gather(t.Context(), b.job, b, silent{})
			if err != nil || e.Fault != "" {
				t.Fatal(err, e.Fault)
			}
			if err := gather.CheckReference(t.Context(), b.job, e, b, silent{}); err != nil {
				t.Fatal(err)
			}
			if e.Fault != c.says || e.Setup != (c.says != "") {
				t.Errorf("%q, setup %v, want %q", e.Fault, e.Setup, c.says)
			}
			if !strings.HasPrefix(e.Provenance.Tools["reference"], "reference.py sha256:") {
				t.Errorf("the tools are %v", e.Provenance.Tools)
			}
		})
	}
}

// On a host without PyTorch the names of a reference are compared with the manifest, and the report says that it was not run.
func TestTorchReferenceStatic(t *testing.T) {
	needsCompiler(t)
	const static = "version: 1\ngates:\n  ptxas: {registers: \"<= 32\"}\nrules:\n  - name: default\n"
	for name, c := range map[string]struct{ reference, source, called, says string }{
		"expression":        {`{torch: "2 * x"}`, "", "reference.torch in the manifest", ""},
		"another name":      {`{torch: "2 * F.relu(z)"}`, "", "", "the reference reference.torch in the manifest of the base uses z, which the manifest does not have (it has x, N)"},
		"function":          {pythonFile, "import torch\ndef double(x, N):\n    return 2 * x\n", "reference.py", ""},
		"another parameter": {pythonFile, "import torch\ndef double(x, size):\n    return 2 * x\n", "", "the reference reference.py of the base takes size, which the manifest does not have (it has x, N, y) (line 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := inPython(t, c.reference)
			if python, err := pyref.Find(t.Context(), os.Getenv); err != nil || python.Torch != "" {
				t.Skip("the reference runs where there is PyTorch")
			}
			b := trial{manifest: manifest, policy: static, baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_90", python: c.source}.backend(t)
			e, err := gather.Gather(t.Context(), b.job, b, silent{})
			if err == nil {
				err = gather.CheckReference(t.Context(), b.job, e, b, silent{})
			}
			if err != nil || e.Fault != c.says {
				t.Fatalf("%v, %q, want %q", err, e.Fault, c.says)
			}
			if note := "This host has no PyTorch, so " + c.called + " was not run: only its names were compared with the manifest."; slices.Contains(e.Notes, note) != (c.says == "") {
				t.Errorf("the notes are %q", e.Notes)
			}
		})
	}
}

// What a worker says of the reference is the reference's mistake, and no fault of the runner.
func TestWorkerBlamesReference(t *testing.T) {
	_, problem := receive(strings.NewReader(`{"progress": "small"}{"error": "small (N=1), seed 1, normal inputs: raised KeyError: 1 (line 3)", "mistake": {"text": "raised KeyError: 1", "line": 3}}`), func(worker.Reply) {})
	mistake, ok := errors.AsType[*pyref.Mistake](problem)
	if !ok || mistake.Line != 3 {
		t.Fatalf("%#v", problem)
	}
	b := trial{manifest: inPython(t, pythonFile), policy: "version: 1\ngates:\n  ptxas: {registers: \"<= 32\"}\nrules:\n  - name: default\n", baseline: around(baselineBody), candidate: around(fasterBody), arch: "sm_90", python: "def double(x):\n    return 2 * x\n"}.backend(t)
	setup, ok := errors.AsType[*runners.SetupError](b.blamed(problem))
	if !ok || setup.Error() != "the reference reference.py of the base raised KeyError: 1 (line 3)" || len(setup.At) != 1 || setup.At[0].Line != 3 {
		t.Errorf("%#v", setup)
	}
}

// On a GPU the worker asks the reference's process for what each case, and each timed launch that it looks at, should give. Evidence
// is left in the folder that KERNELGATE_GPU_EVIDENCE names.
func TestPythonReferenceOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	python, err := pyref.Find(t.Context(), os.Getenv)
	if err != nil {
		t.Skip(err)
	}
	const numpy, torch = "import numpy\ndef double(x):\n    return 2 * x\n", "import torch\ndef double(x, y, N):\n    assert x.shape == (N,) and x.device.type == DEVICE\n    y.copy_(2 * x)\n"
	almost := around("    if (i < N) y[i] = i == N - 1 && N > 1000 ? 0 : 2 * x[i];")
	for _, c := range []struct {
		name, reference, source, candidate string
		torch                              bool
		outcome                            gates.Outcome
		reason                             gates.Reason
		says                               string
	}{
		{"numpy", pythonFile, numpy, around(fasterBody), false, gates.Pass, "", ""},
		{"numpy-wrong", pythonFile, numpy, almost, false, gates.Defer, gates.ReasonCorrectness, ""},
		{"torch", pythonFile, strings.Replace(torch, "DEVICE", "'cuda'", 1), around(fasterBody), true, gates.Pass, "", ""},
		{"torch-on-the-cpu", "{source: reference.py, entry: double, device: cpu}", strings.Replace(torch, "DEVICE", "'cpu'", 1), around(fasterBody), true, gates.Pass, "", ""},
		{"torch-nan", pythonFile, "import torch\ndef double(x):\n    return 2 * x * float('nan')\n", around(fasterBody), true, gates.Error, "", "returns NaN in y for finite inputs"},
		{"torch-on-the-gpu", "{source: reference.py, entry: double, device: cuda, dtype: float32}", strings.Replace(torch, "DEVICE", "'cuda'", 1), around(fasterBody), true, gates.Pass, "", ""},
		{"torch-on-the-gpu-wrong", "{source: reference.py, entry: double, device: cuda}", strings.Replace(torch, "DEVICE", "'cuda'", 1), almost, true, gates.Defer, gates.ReasonCorrectness, ""},
		{"expression", `{torch: "F.relu(x) * 2 - F.relu(-x) * 2"}`, "", around(fasterBody), true, gates.Pass, "", ""},
		{"raises", pythonFile, "def double(x, N):\n    if N > 1000:\n        raise KeyError('mission')\n    return 2 * x\n", around(fasterBody), false, gates.Error, "", "the reference reference.py of the base raised KeyError: 'mission' (line 3)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.torch && python.Torch == "" {
				t.Skip("no PyTorch")
			}
			e, v := trial{manifest: inPython(t, c.reference), policy: policyText, baseline: around(baselineBody), candidate: c.candidate, python: c.source, timeout: 5 * time.Second}.gather(t)
			if v.Outcome != c.outcome || v.Reason != c.reason && c.outcome != gates.Error || !strings.Contains(v.Summary+e.Fault, c.says) {
				t.Errorf("got %s (%s): %s %s\nwant %s (%s): …%s…", v.Outcome, v.Reason, v.Summary, e.Fault, c.outcome, c.reason, c.says)
			}
			if e.Performance != nil {
				for _, r := range e.Performance.Rounds {
					if r.Before != nil && len(r.Before.Foreign) > 0 {
						t.Errorf("the reference's process counts as another's on the GPU: %v", r.Before.Foreign)
					}
				}
			}
			t.Logf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			keepEvidence(t, c.name, e)
		})
	}
}
