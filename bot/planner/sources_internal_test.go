package planner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// A change that only makes a file executable is another set of sources: a compiler's program can
// see the bit.
func TestSourcesSeeTheExecutableBit(t *testing.T) {
	text := scripted.Manifest + "shapes: {small: {N: 10}}\nlimits: {N: 1..100}\n"
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	base, head := t.TempDir(), t.TempDir()
	for _, dir := range []string{base, head} {
		if err := os.WriteFile(filepath.Join(dir, "scale.c"), []byte("// 1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	job := runners.Job{Key: "k", Manifest: m, ManifestText: text, Trusted: base, Candidate: runners.Side{Dir: head, Variant: m.DefaultVariant}}
	before, err := sources(job)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(head, "scale.c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if after, err := sources(job); err != nil || after == before {
		t.Errorf("the digest is the same (%v)", err)
	}
}
