package manifest

import (
	"strings"
	"testing"
)

const goodPython = `version: 1
name: softmax
mode: cpu
entry: softmax
arguments:
  - {name: x, dtype: f16, access: in, shape: [M, N]}
  - {name: y, dtype: f16, access: out, shape: [M, N]}
  - {name: scale, dtype: f32, access: scalar, value: 1/sqrt(N)}
reference: {source: reference.py, entry: softmax}
tolerance: {abs: 0.06}
shapes:
  small: {M: 4, N: 64}
source: softmax.c
`

const pythonField = "reference: {source: reference.py, entry: softmax}"

var pythonMistakes = []mistake{
	{"neither source nor torch", goodPython, pythonField, "reference: {dims: [N]}", []string{
		"kernel.yaml:9:12: reference.entry: is required (write e.g. entry: sdpa_reference)",
		"kernel.yaml:9:12: reference.source: is required (write e.g. source: reference.c)",
	}},
	{"function in Python without a name", goodPython, pythonField, "reference: {source: reference.py}", []string{
		"kernel.yaml:9:12: reference.entry: is required (write the function of reference.py that computes the outputs, e.g. entry: softmax)",
	}},
	{"C++ name of a function in Python", goodPython, pythonField, "reference: {source: reference.py, entry: ns::softmax}", []string{
		`kernel.yaml:9:42: reference.entry: "ns::softmax" is no name of a function in Python (write e.g. softmax)`,
	}},
	{"torch beside a source", goodPython, pythonField, "reference: {source: reference.py, entry: softmax, torch: \"F.softmax(x, -1)\"}", []string{
		"kernel.yaml:9:21: reference.source: is not read with torch, which is the reference (delete one of them)",
		"kernel.yaml:9:42: reference.entry: is not read with torch, which is the reference (delete one of them)",
	}},
	{"torch of two lines", goodPython, pythonField, "reference: {torch: \"x = 1\\nx\"}", []string{
		"kernel.yaml:9:20: reference.torch: is no expression of one line with at most 2000 characters (write a function in a .py file, as source and entry)",
	}},
	{"launch of a function in Python", goodPython, "entry: softmax}", "entry: softmax, launch: {grid: [1], block: [1]}}", []string{
		"kernel.yaml:9:59: reference.launch: is not read for a reference in Python (delete it)",
	}},
	{"dims of a function in Python", goodPython, "entry: softmax}", "entry: softmax, dims: [N]}", []string{
		"kernel.yaml:9:57: reference.dims: is not read for a reference in Python: it gets the dims whose names its parameters have (delete it)",
	}},
	{"reference on a device that cpu mode lacks", goodPython, "entry: softmax}", "entry: softmax, device: cuda}", []string{
		"kernel.yaml:9:59: reference.device: cuda is for kernels of cuda mode (delete it)",
	}},
	{"format that no reference computes in", goodPython, "entry: softmax}", "entry: softmax, dtype: fp64}", []string{
		`kernel.yaml:9:58: reference.dtype: "fp64" is not one of float64, float32 (did you mean float64?)`,
	}},
	{"format of a reference in C", goodPython, "source: reference.py, entry: softmax}", "source: reference.c, entry: expected, dtype: float32}", []string{
		"kernel.yaml:9:58: reference.dtype: is for a reference in Python (delete it, or name a .py file as the source)",
	}},
	{"reference in Python as the source of a change", goodPython, "source: softmax.c", "sources: [\"*.py\"]\nsource: reference.py", []string{
		`kernel.yaml:14:9: source: "reference.py" is in no language that cpu mode compiles (end the name of a C file in .c, and that of a C++ file in .cc or .cpp or .cxx or .c++)`,
		`kernel.yaml:14:9: source: "reference.py" is the reference, which no change may bring (name another file)`,
	}},
}

// A function in Python is told its parameters by name, and no change brings its file, whatever the globs say.
func TestPythonReference(t *testing.T) {
	m, err := Parse(FileName, []byte(strings.Replace(goodPython, "source: softmax.c", "sources: [\"*.c\", \"*.py\"]\nsource: softmax.c", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Reference.Python() || m.ReferenceOnDevice() || m.Reference.Called() != "reference.py" {
		t.Errorf("%+v", m.Reference)
	}
	if got, want := m.PythonReference(), "def softmax(x, scale, M, N): ... return y"; got != want {
		t.Errorf("the function is %q, want %q", got, want)
	}
	for _, file := range []string{"reference.py", "Reference.PY"} {
		if m.IsSource(file) {
			t.Errorf("a change may bring %s", file)
		}
	}
	if !m.IsSource("numpy.py") {
		t.Error("a file that the globs name is no source")
	}
	m, err = Parse(FileName, []byte(strings.Replace(goodPython, pythonField, `reference: {torch: "F.softmax(x * scale, -1)", dtype: float32}`, 1)))
	if err != nil || !m.Reference.Python() || m.Reference.DType != Float32 || m.Reference.Called() != "reference.torch in the manifest" {
		t.Errorf("%+v, %v", m.Reference, err)
	}
}
