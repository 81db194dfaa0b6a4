package cuda

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/toolchaintest"
	"github.com/kernelgate/kernelgate/runners/gather"
)

const publicPolicy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], distributions: [normal, uniform], norm_error: "<= 2%", determinism: true}
  performance:
    target: {shapes: first, p50: "<= 10ms"}
    rounds: {min: 6, max: 6}
    pairs: 10
    control: 10%
    solo_shift: 50%
rules:
  - name: default
`

// The kernels of testdata/public do what their references say, launched as their manifests say. Each is a new kernel, which is
// compared with its reference and timed beside copies of itself.
func TestPublicOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	policy, err := policy.Parse("test.yaml", []byte(publicPolicy))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range public(t) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for from, to := range map[string]string{"gate": "base", "csrc": "head/" + manifest.RepositoryFolder + "/csrc", "common": "head/" + manifest.RepositoryFolder + "/common"} {
				if err := os.CopyFS(filepath.Join(root, to), os.DirFS("testdata/public/"+from)); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile("testdata/public/gate/" + name + ".kernel.yaml")
			if err != nil {
				t.Fatal(err)
			}
			job := runners.Job{
				Manifest: m, ManifestText: string(text), Policy: policy, Trusted: filepath.Join(root, "base"),
				Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: m.DefaultVariant},
			}
			b, err := New(t.Context(), job, Config{Scratch: filepath.Join(root, "build"), Cache: toolchaintest.Builds(t), Program: []string{os.Args[0], serveWord}, Getenv: os.Getenv})
			if err != nil {
				t.Fatal(err)
			}
			e, err := gather.Gather(t.Context(), job, b, silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(policy, "test.yaml", e)
			if v.Outcome != gates.Pass {
				t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			t.Logf("%s: %s", v.Outcome, v.Summary)
			keepEvidence(t, name, e)
		})
	}
}

// What an H200 showed of them is judged as it was.
func TestPublicRecorded(t *testing.T) {
	for name := range public(t) {
		if v := judgeRecorded(t, "public/"+name, publicPolicy); v.Outcome != gates.Pass {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
	}
}
