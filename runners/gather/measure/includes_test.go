package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// TestIncludeSets checks that a kernel is built with the runner's own headers. They are on record,
// a different state of them is a different build, and a runner without them reports that.
func TestIncludeSets(t *testing.T) {
	if _, err := toolchain.FindCUDA(t.Context(), os.Getenv); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	const manifestYAML = `version: 1
name: fill
mode: cuda
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 4096}}
entry: fill
arch: [sm_89]
root: csrc
source: fill.cu
include: [<lib>]
launch: {grid: ["N/128"], block: [128]}
`
	m, err := manifest.Parse("k/fill.kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte("version: 1\ngates: {}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("head/.repository/csrc/fill.cu", "#include <lib/value.h>\nextern \"C\" __global__ void fill(float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = VALUE; }\n")
	write("lib/include/lib/value.h", "#define VALUE 1.5f\n")
	write("lib/VERSION", "7.1\n")
	write("head/reference.cu", "extern \"C\" __global__ void reference(float *y) { y[threadIdx.x] = 1.5f; }\n")
	cache := t.TempDir()
	measured := func(name string, sets IncludeSets) runners.Measured {
		t.Helper()
		job := runners.Job{Key: "k/fill.kernel.yaml", Manifest: m, ManifestText: manifestYAML, Policy: p, Trusted: filepath.Join(root, "head"), Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: "default"}}
		out, err := Config{Static: true, Arch: "sm_89", Name: "gpu1", Cache: cache, Includes: sets}.Measure(t.Context(), job, t.TempDir(), silent{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return out
	}
	sets := IncludeSets{"lib": filepath.Join(root, "lib/include")}
	first := measured("first", sets).Evidence
	if first.Candidate == nil || !first.Candidate.OK || first.Candidate.Cached || first.Candidate.Source != "fill.cu" {
		t.Fatalf("%+v %s", first.Candidate, first.Fault)
	}
	if was := first.Provenance.Tools["<lib>"]; !strings.HasPrefix(was, "7.1, sha256 ") {
		t.Errorf("the record has %v", first.Provenance.Tools)
	}
	if again := measured("again", sets).Evidence; !again.Candidate.Cached || again.Candidate.Code != first.Candidate.Code {
		t.Error("the same headers are another build")
	}
	write("lib/include/lib/value.h", "#define VALUE 2.5f\n")
	other := measured("another", sets).Evidence
	if other.Candidate.Cached || other.Candidate.Code == first.Candidate.Code || other.Provenance.Tools["<lib>"] == first.Provenance.Tools["<lib>"] {
		t.Error("another state of the headers is the same build")
	}
	if none := measured("none", nil).Evidence; none.Setup || !strings.Contains(none.Fault, "k/fill.kernel.yaml includes the set <lib>, which the runner gpu1 does not have (it has none)") {
		t.Errorf("a runner without them: %q", none.Fault)
	}
}
