package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// cuteDSL is the Python that fetch-python.sh has made; without it the test is skipped, except in CI.
func cuteDSL(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(filepath.Join("..", "..", "build", "toolchain", "fetch-python.sh"), "cutedsl", "--check").Output()
	if err == nil {
		return filepath.Join(strings.TrimSpace(string(out)), "bin", "python")
	}
	if os.Getenv("CI") != "" {
		t.Fatal("CuTe DSL is not here: ", err)
	}
	t.Skip("CuTe DSL is not here; make setup fetches it")
	return ""
}

// A kernel in CuTe DSL takes the place of one in CUDA: its own program compiles it in the sandbox, without a GPU, and what comes of
// it is judged, held against the manifest and shown like any other machine code.
func TestCuTeDSLStatic(t *testing.T) {
	needsCompiler(t)
	python := cuteDSL(t)
	getenv := func(name string) string {
		if name == "KERNELGATE_PYTHON" {
			return python
		}
		return os.Getenv(name)
	}
	base := readText(t, "testdata", "kernel.yaml")
	own := strings.NewReplacer("entry: scale\n", "compiler: command\nbuild: [python3, build.py]\nentry: scale\n", "scale.cu", "build.py", "  block: [256]\n", "", "flags: [-O3]\n", "").Replace(base)
	build := readText(t, "..", "..", "build", "toolchain", "testdata", "cutedsl", "build.py")
	m, err := manifest.Parse("kernel.yaml", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	side, err := manifest.Join("kernel.yaml", []byte(base), []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte("version: 1\ngates: {ptxas: {registers: \"<= 32\"}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"sm_89", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			if arch != "sm_90" {
				long.Test(t)
			}
			root := t.TempDir()
			for file, text := range map[string]string{"base/scale.cu": around(fasterBody), "base/reference.cu": readText(t, "testdata", "reference.cu"), "head/build.py": build} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			job := runners.Job{
				Manifest: m, ManifestText: base, Policy: p, Trusted: filepath.Join(root, "base"), Baseline: &runners.Side{Dir: filepath.Join(root, "base"), Variant: "default"},
				Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: "default", Manifest: side, ManifestText: own},
			}
			b, err := New(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Arch: arch, Getenv: getenv})
			if err != nil {
				t.Fatal(err)
			}
			e, err := gather.Gather(t.Context(), job, b, silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(p, "test.yaml", e)
			if v.Outcome != gates.Pass || *e.Candidate.Resources.BlockThreads != 256 || *e.Candidate.Resources.Registers < 4 {
				t.Fatalf("%s (%s): %s %s\n%s", v.Outcome, v.Reason, v.Summary, e.Fault, b.BuildLog())
			}
			if e.MachineCode == nil || len(e.MachineCode.Changes) != 1 || e.MachineCode.Changes[0].Candidate.Memory < 2 {
				t.Errorf("the code is shown as %+v", e.MachineCode)
			}
		})
	}
}
