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
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// What a manifest says in place of nvcc.
var (
	byPTX     = strings.NewReplacer("entry: scale\n", "compiler: ptx\nentry: scale\n", "scale.cu", "scale.ptx")
	byCommand = strings.NewReplacer("entry: scale\n", "compiler: command\nbuild: [python3, build.py]\nentry: scale\n", "scale.cu", "build.py", "  block: [256]\n", "", "flags: [-O3]\n", "")
)

// otherCompiler judges PTX that takes the place of a CUDA kernel.
func otherCompiler(t *testing.T, own *strings.Replacer, code, baseline, policyYAML, arch string) (*gates.Evidence, *gates.Verdict) {
	t.Helper()
	const build = `import json, os, subprocess
out = os.environ["OUT"]
subprocess.run(["ptxas", "--gpu-name", os.environ["ARCH"], "-lineinfo", "scale.ptx", "-o", out + "/kernel.cubin"], check=True)
json.dump({"block": [256]}, open(out + "/kernel.json", "w"))
`
	base := readText(t, "testdata", "kernel.yaml")
	m, err := manifest.Parse("kernel.yaml", []byte(base))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for file, text := range map[string]string{
		"base/scale.cu": baseline, "base/reference.cu": readText(t, "testdata", "reference.cu"), "head/scale.ptx": code, "head/build.py": build,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	side, err := manifest.Join("kernel.yaml", []byte(base), []byte(own.Replace(base)))
	if err != nil {
		t.Fatal(err)
	}
	job := runners.Job{
		Manifest: m, ManifestText: base, Policy: p, Trusted: filepath.Join(root, "base"), Baseline: &runners.Side{Dir: filepath.Join(root, "base"), Variant: "default"},
		Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: "default", Manifest: side, ManifestText: own.Replace(base)},
	}
	b, err := New(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Arch: arch, Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	e, err := gather.Gather(t.Context(), job, b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e, gates.Judge(p, "test.yaml", e)
}

// PTX, and what a program of the repository makes of it, are built, measured against budgets and held against the manifest as
// CUDA is; a change from one compiler to another is one of the implementation.
func TestCompilersStatic(t *testing.T) {
	needsCompiler(t)
	code := readText(t, "..", "..", "build", "toolchain", "testdata", "scale.ptx")
	built := map[string]*gates.Build{}
	for _, c := range []struct {
		name           string
		own            *strings.Replacer
		code, by, says string
	}{
		{"ptx", byPTX, code, "ptxas 1", ""},
		{"command", byCommand, code, "command python3 build.py", ""},
		{"ptx with another parameter", byPTX, strings.Replace(code, ".param .u32 n", ".param .u64 n", 1), "", "parameter 2 is 8 bytes at offset 16 in the code, N (i32): 4 bytes at offset 16 in the manifest"},
		{"command with one more", byCommand, strings.Replace(code, ".param .u32 n", ".param .u32 n, .param .u64 more", 1), "", "the kernel scale takes 4 parameters and the manifest passes 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, v := otherCompiler(t, c.own, c.code, around(fasterBody), "version: 1\ngates: {ptxas: {registers: \"<= 32\"}}\nrules: [{name: default}]\n", "sm_90")
			if c.says != "" {
				if v.Reason != gates.ReasonBuild || !strings.Contains(v.Summary, c.says) {
					t.Errorf("%s (%s): %s\nwant …%s…", v.Outcome, v.Reason, v.Summary, c.says)
				}
				return
			}
			r := e.Candidate.Resources
			if v.Outcome != gates.Pass || !strings.HasPrefix(e.Candidate.Compiler, c.by) || *r.BlockThreads != 256 || *r.Registers < 4 {
				t.Errorf("%s (%s): %s %s; %+v", v.Outcome, v.Reason, v.Summary, e.Fault, e.Candidate)
			}
			built[c.name] = e.Candidate
		})
	}
	if built["ptx"] != nil && built["command"] != nil && *built["ptx"].Resources.Registers != *built["command"].Resources.Registers {
		t.Error("the same PTX has other registers by another way")
	}
}
