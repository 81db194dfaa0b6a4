package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// TestManifestInTheTopFolder checks that a manifest in the repository's top folder gates nothing. A
// change that leaves it there is refused, in a commit and in the work tree. A change that moves it
// into a folder is planned.
func TestManifestInTheTopFolder(t *testing.T) {
	for _, name := range []string{"kernel.yaml", "scale.kernel.yaml"} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, name: manifestYAML, "scale.c": "// base\n", "reference.c": "// truth\n"})
			head := r.commit(map[string]string{"scale.c": "// head\n"})
			for _, rev := range []string{head, ""} {
				keys, err := r.plan(plan.Options{Base: base, Head: rev}).Kernels(t.Context())
				var refused checkout.Refused
				var mistake usage.Error
				if !errors.As(err, &refused) || !errors.As(err, &mistake) || refused.File != name || !strings.Contains(refused.Why, "move it") {
					t.Errorf("at %q: %v %v", rev, keys, err)
				}
			}
			moved := r.commit(map[string]string{name: "", "scale.c": "", "reference.c": "", "k/" + name: manifestYAML, "k/scale.c": "// head\n", "k/reference.c": "// truth\n"})
			keys, err := r.plan(plan.Options{Base: base, Head: moved}).Kernels(t.Context())
			if err != nil || len(keys) != 1 {
				t.Errorf("moved into a folder: %v %v", keys, err)
			}
		})
	}
}

// TestFilesThatABuildProgramReads checks that a program that builds a kernel may read anything: an
// edit of any file that it sees touches the kernel, whatever the name of its source.
func TestFilesThatABuildProgramReads(t *testing.T) {
	const built = `version: 1
name: scale
mode: cuda
compiler: command
build: [python3, build.py]
entry: scale
source: scale.cu
root: csrc
arch: [sm_90]
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
launch: {grid: [N]}
reference: {source: reference.cu, entry: reference, launch: {grid: [N], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {N: 10}}
limits: {N: 1..100}
`
	r := newTree(t)
	base := r.commit(map[string]string{
		".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": built, "k/reference.cu": "// truth\n",
		"csrc/scale.cu": "int x;\n", "csrc/build.py": "# build\n", "csrc/deep/tile.h": "// tile\n", "docs/notes.txt": "notes\n",
	})
	for file, want := range map[string]string{"csrc/build.py": "k", "csrc/deep/tile.h": "k", "csrc/scale.cu": "k", "csrc/new.h": "k", "docs/notes.txt": ""} {
		r.git("reset", "-q", "--hard", base)
		head := r.commit(map[string]string{file: "# edited\n"})
		keys, err := r.plan(plan.Options{Base: base, Head: head}).Kernels(t.Context())
		if err != nil || strings.Join(keys, " ") != want {
			t.Errorf("an edit of %s touches %q (%v), want %q", file, keys, err, want)
		}
	}
}
