package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	sides "github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// The candidate is built and launched as its own manifest says, and the baseline as the
// base's; headers of the repository are found; and equal machine code that is launched
// otherwise is not taken for the same.
func TestImplementationOfASide(t *testing.T) {
	needsCompiler(t)
	const (
		base = `version: 1
name: scale
mode: cuda
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 4096}}
entry: scale
arch: [sm_90]
source: scale.cu
launch: {grid: ["N/128"], block: [128]}
`
		plain  = "extern \"C\" __global__ void scale(float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n"
		header = "#include <deep/one.cuh>\nextern \"C\" __global__ void scale(float *y) { y[blockIdx.x * blockDim.x + threadIdx.x] = ONE; }\n"
	)
	wider := strings.Replace(base, `launch: {grid: ["N/128"], block: [128]}`, `launch: {grid: ["N/256"], block: [256], shared_memory: 1024}`, 1)
	for name, c := range map[string]struct {
		own, source string
		threads     int
		same        bool
	}{
		"another launch": {wider, plain, 256, false},
		"a file and a header of its own": {
			strings.NewReplacer("source: scale.cu", "variants: {new: {source: new.cu, flags: [-DUNUSED]}}", "arch:", "include: [common]\narch:").Replace(base), header, 128, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := manifest.Parse("kernel.yaml", []byte(base))
			if err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse("test.yaml", []byte("version: 1\ngates: {}\nrules: [{name: default}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			write := func(file, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("base/scale.cu", plain)
			write("head/scale.cu", c.source)
			write("head/new.cu", c.source)
			write("head/.repository/common/deep/one.cuh", "#include \"../value.h\"\n#define ONE VALUE\n")
			write("head/.repository/common/value.h", "#define VALUE 1\n")
			job := runners.Job{
				Manifest: m, ManifestText: base, Policy: p, Trusted: filepath.Join(root, "base"),
				Baseline: &runners.Side{Dir: filepath.Join(root, "base"), Variant: "default"}, Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: "default"},
			}
			if c.own != "" {
				s := &job.Candidate
				if s.Manifest, err = manifest.Join("kernel.yaml", []byte(base), []byte(c.own)); err != nil {
					t.Fatal(err)
				}
				s.ManifestText, s.Variant = c.own, s.Manifest.DefaultVariant
			}
			b, err := New(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Arch: "sm_90", Getenv: os.Getenv})
			if err != nil {
				t.Fatal(err)
			}
			e, err := gather.Gather(t.Context(), job, b, silent{})
			if err != nil || e.Fault != "" || !e.Candidate.OK || !e.Baseline.OK {
				t.Fatalf("%v %s %+v", err, e.Fault, e.Candidate)
			}
			if e.Candidate.Code != e.Baseline.Code {
				t.Fatal("the machine code is another")
			}
			if got := []int{*e.Baseline.Resources.BlockThreads, *e.Candidate.Resources.BlockThreads}; got[0] != 128 || got[1] != c.threads {
				t.Errorf("blocks of %v threads, want 128 and %d", got, c.threads)
			}
			if e.SameCode != c.same {
				t.Errorf("it is taken for the same: %v", e.SameCode)
			}
			launched(t, b, gates.SideBaseline, base, 128)
			launched(t, b, gates.SideCandidate, base, c.threads)
		})
	}
}

// launched sees what a side's process would be told.
func launched(t *testing.T, b *Backend, side rune, problem string, threads int) {
	t.Helper()
	built := map[rune]*sides.Built{gates.SideBaseline: b.sides[runners.Baseline], gates.SideCandidate: b.sides[runners.Candidate]}[side]
	m, err := built.Joined(problem)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := m.Steps(built.Variant, m.Shapes[0].Dims, built.Toggles)
	if err != nil || steps[0].Block[0] != threads {
		t.Errorf("side %c is launched as %+v, want %d threads a block (%v)", side, steps, threads, err)
	}
}
