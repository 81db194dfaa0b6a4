package verify_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A runner builds with the compilers that are pinned: what another makes of the sources is no answer.
func TestPinnedCompilers(t *testing.T) {
	const manifestYAML = `version: 1
name: fill
mode: cuda
compiler: triton
entry: fill
arch: [sm_90]
source: kernel.py
launch: {grid: [1]}
arguments: [{name: y, dtype: f32, access: out, shape: [N]}, {name: N, dtype: i32, access: scalar, value: N}]
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 4096}}
`
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte("version: 1\ngates: {}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	job := runners.Job{
		Manifest: m, ManifestText: manifestYAML, Policy: p, PolicyFile: "policy.yaml",
		Baseline:  &runners.Side{Variant: "default", Toolchains: policy.Toolchains{Triton: &policy.Toolchain{Version: "3.6.0"}}},
		Candidate: runners.Side{Variant: "default", Toolchains: policy.Toolchains{Triton: &policy.Toolchain{Version: "3.9.0", Digest: digest}}},
	}
	shapes, err := job.ShapesOnRecord()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before, after, digest, want string
	}{
		"as asked":                {"triton 3.6.0", "triton 3.9.0", digest, ""},
		"the old one for both":    {"triton 3.6.0", "triton 3.6.0", digest, `candidate.compiler is "triton 3.6.0", and the job says "triton 3.9.0"`},
		"the new one for both":    {"triton 3.9.0", "triton 3.9.0", digest, `baseline.compiler is "triton 3.9.0", and the job says "triton 3.6.0"`},
		"another build of it":     {"triton 3.6.0", "triton 3.9.0", "sha256:" + strings.Repeat("b", 64), "candidate.compiler_digest is "},
		"one that nobody checked": {"triton 3.6.0", "triton 3.9.0", "", "candidate.compiler_digest is "},
	} {
		build := func(compiler, code, digest string) *gates.Build {
			return &gates.Build{Variant: "default", Source: "kernel.py", OK: true, Compiler: compiler, Code: code, Digest: digest}
		}
		e := &gates.Evidence{
			Schema: gates.EvidenceSchema, Kernel: "fill", Mode: "cuda", Device: gates.Device{Kind: "gpu", Name: "H200", Arch: "sm_90"}, Shapes: shapes,
			Baseline: build(c.before, "a", ""), Candidate: build(c.after, "b", c.digest),
		}
		err := verify.Check(job, 0, e)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
