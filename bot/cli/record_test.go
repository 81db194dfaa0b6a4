package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const recordManifest = `version: 1
name: attention
mode: cpu
entry: attention
source: attention.c
arguments:
  - {name: q, dtype: f16, access: in, shape: [S, D]}
  - {name: k, dtype: f32, access: in, shape: [D, S]}
  - {name: index, dtype: i64, access: in, shape: [S], init: 0..S-1}
  - {name: o, dtype: f32, access: out, shape: [S, D]}
  - {name: scale, dtype: f32, access: scalar, value: 1/sqrt(D)}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.01}
shapes: {small: {S: 2, D: 4}, mission: {S: 3, D: 4}}
`

// recordScript records in every way, with a tensor that has PyTorch's methods in addition to NumPy's arrays.
const recordScript = `
import sys, types
sys.path.insert(0, sys.argv[1])
import numpy as np
import kernelgate_record as kg

class Tensor:  # as PyTorch's: no tobytes, bytes by a view
    def __init__(self, array, dtype): self.array, self.dtype, self.shape = array, dtype, array.shape
    def detach(self): return self
    def cpu(self): return self
    def contiguous(self): return Tensor(np.ascontiguousarray(self.array), self.dtype)
    def reshape(self, n): return Tensor(self.array.reshape(n), self.dtype)
    def numel(self): return self.array.size
    def view(self, dtype): return types.SimpleNamespace(numpy=lambda: self.array.view(np.uint8))
sys.modules["torch"] = types.SimpleNamespace(uint8="torch.uint8")

q = Tensor(np.arange(12, dtype=np.float16).reshape(4, 3).T, "torch.float16")  # not contiguous
k = np.arange(12, dtype=">f4").reshape(4, 3)
index = np.array([2, 0, 1])
holder = types.SimpleNamespace(attention=lambda *args, **kwargs: "the result")
was = holder.attention
with kg.record("with.safetensors", names=["q", "k", "index", "scale", None], of=(holder, "attention")):
    assert holder.attention(q, k, index, 0.5, "text") == "the result"
    holder.attention("a second call is not stored")
assert holder.attention is was

@kg.record("decorated.safetensors", call=2)
def attention(q, k, index, scale, mode="x"):
    k[:] = 0
    return "done"
attention(q, k.copy(), index, 9.0)
assert attention(q, k.copy(), index, scale=0.5) == "done"
kg.record("saved.safetensors").save(q=q, k=k, index=index, scale=0.5, bias=None)
for wrong in [dict(x=np.zeros(1, np.complex64)), dict(x="text"), dict()]:
    try: kg.record("none.safetensors").save(**wrong)
    except (TypeError, ValueError) as e: print(e)
    else: raise SystemExit("%s was stored" % wrong)
try:
    with kg.record("none.safetensors", of=(holder, "attention")): pass
except RuntimeError as e: print(e)
else: raise SystemExit("nothing was stored, and nobody said so")
assert holder.attention is was
`

// What the helper writes is what the manifest's reader takes, however it was recorded.
func TestRecord(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	var helper bytes.Buffer
	cmd := recordCommand(&helper)
	cmd.SetArgs([]string{"--helper"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"kernelgate_record.py": helper.String(), "script.py": recordScript, "kernel.yaml": recordManifest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), python, "-B", "script.py", dir)
	run.Dir, run.Env = dir, append(os.Environ(), "PYTHONPATH="+fetchedNumPy())
	out, err := run.CombinedOutput()
	if strings.Contains(string(out), "No module named 'numpy'") {
		t.Skip("NumPy was not fetched")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"x is complex64, which is not stored", "x is a str, neither a tensor nor a number", "there is no tensor to store", "nothing was recorded in none.safetensors: call 1 did not happen"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no word of %q in\n%s", want, out)
		}
	}
	var first []byte
	for _, name := range []string{"with", "decorated", "saved"} {
		path := filepath.Join(dir, name+".safetensors")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Errorf("%s differs:\n%q\n%q", name, data, first)
		}
		lines, err := recordedLines(path, filepath.Join(dir, "kernel.yaml"), "mission")
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse("kernel.yaml", []byte(recordManifest+lines))
		if err != nil || len(m.Recorded) != 1 || m.Recorded[0].File != name+".safetensors" || m.Recorded[0].Vary == nil {
			t.Errorf("the lines are not read: %v\n%s", err, lines)
		}
	}
	if !bytes.Contains(first, []byte{0x00, 0x00, 0x00, 0x42, 0x00, 0x46}) { // 0, 3, 6 in f16: q was transposed
		t.Errorf("q is not stored row by row: %q", first)
	}
	if _, err := recordedLines(filepath.Join(dir, "saved.safetensors"), filepath.Join(dir, "kernel.yaml"), "small"); err == nil || !strings.Contains(err.Error(), "has the shape [3 4], and at this shape the argument has [2 4]") && !strings.Contains(err.Error(), "has the shape") {
		t.Errorf("another shape: %v", err)
	}
	if _, err := recordedLines(filepath.Join(dir, "none.safetensors"), filepath.Join(dir, "kernel.yaml"), ""); err == nil {
		t.Error("a file that is not there was read")
	}
}

// fetchedNumPy returns the folder of the NumPy that make setup fetches; "" where there is none.
func fetchedNumPy() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	folders, _ := filepath.Glob(filepath.Join(cache, "kernelgate", "numpy-*"))
	for _, folder := range folders {
		if info, err := os.Stat(filepath.Join(folder, "numpy")); err == nil && info.IsDir() {
			return folder
		}
	}
	return ""
}
