package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
)

// A kernel that equals its baseline has no difference to explain, however often it is profiled: five kernels of different limits,
// ten times each.
func TestNothingToExplainOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	pol, err := policy.Parse("test.yaml", []byte("version: 1\ngates: {build: {timeout: 1m}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bank_conflicts", "few_blocks", "barriers", "launches", "tensor_cores"} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs(filepath.Join("testdata", "why", name))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "kernel.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Parse("kernel.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			side := runners.Side{Dir: dir, Variant: m.DefaultVariant}
			b, err := New(t.Context(), runners.Job{Manifest: m, ManifestText: string(text), Policy: pol, Trusted: dir, Baseline: &side, Candidate: side}, Config{
				Scratch: t.TempDir(), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Getenv: os.Getenv,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, role := range []runners.Role{runners.Baseline, runners.Candidate} {
				if built, err := b.Build(t.Context(), role, side); err != nil || !built.OK {
					t.Fatal(built.Error, err)
				}
			}
			e := &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: name, Mode: "cuda", Device: b.Device(), Shapes: []gates.Shape{{Name: "target", Dims: m.Shapes[0].Dims.String()}}}
			for i := range 10 {
				x, _, err := b.Explain(t.Context(), runners.Explanation{Shapes: []string{"target"}}, silent{})
				if err != nil || x.Skipped != "" {
					t.Fatal(err, x)
				}
				e.Explained = x
				for _, w := range gates.Explain(e, nil) {
					if w.Moved {
						t.Errorf("%s: %+v", facts.Explained{Explanation: w.Explanation}.Sentence(), w.Rows)
					}
				}
				keepEvidence(t, fmt.Sprintf("%s-%d", name, i), e)
			}
		})
	}
}
