package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/checkout"
	"github.com/kernelgate/kernelgate/runners/plan"
)

// A manifest in the repository's top folder gates nothing. A change that leaves it there is refused, in a commit as in the work
// tree, and one that moves it into a folder is planned.
func TestManifestInTheTopFolder(t *testing.T) {
	for _, name := range []string{"kernel.yaml", "scale.kernel.yaml"} {
		t.Run(name, func(t *testing.T) {
			r := newTree(t)
			base := r.commit(map[string]string{".github/kernelgate.yaml": policy, name: manifest, "scale.c": "// base\n", "reference.c": "// truth\n"})
			head := r.commit(map[string]string{"scale.c": "// head\n"})
			for _, rev := range []string{head, ""} {
				keys, err := r.plan(plan.Options{Base: base, Head: rev}).Kernels(t.Context())
				var refused checkout.Refused
				var mistake strict.Mistake
				if !errors.As(err, &refused) || !errors.As(err, &mistake) || refused.File != name || !strings.Contains(refused.Why, "move it") {
					t.Errorf("at %q: %v %v", rev, keys, err)
				}
			}
			moved := r.commit(map[string]string{name: "", "scale.c": "", "reference.c": "", "k/" + name: manifest, "k/scale.c": "// head\n", "k/reference.c": "// truth\n"})
			keys, err := r.plan(plan.Options{Base: base, Head: moved}).Kernels(t.Context())
			if err != nil || len(keys) != 1 {
				t.Errorf("moved into a folder: %v %v", keys, err)
			}
		})
	}
}

// A program that builds a kernel reads what it likes: an edit of anything that it sees is one of the kernel, whatever its
// source is called.
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
		".github/kernelgate.yaml": policy, "k/kernel.yaml": built, "k/reference.cu": "// truth\n",
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

// A change can repair a manifest of the base that has a mistake, such as a reference that no GPU can run: it is judged by its own.
func TestRepairedManifest(t *testing.T) {
	mistaken := strings.Replace(tritonManifest, "reference: {source: reference.cu, entry: reference, launch: {grid: [N], block: [32]}}", "reference: {source: reference.c, entry: reference}", 1)
	r := newTree(t)
	base := r.commit(map[string]string{".github/kernelgate.yaml": policy, "k/kernel.yaml": mistaken, "k/k.py": "# k\n", "k/reference.c": "// truth\n"})
	if _, err := r.job(plan.Options{Base: base, Head: r.commit(map[string]string{"k/k.py": "# other\n"}), Kernels: []string{"k"}}); err == nil || !strings.Contains(err.Error(), `k/kernel.yaml:14:21: reference.source: "reference.c" is no CUDA file`) {
		t.Errorf("another change: %v", err)
	}
	job, err := r.job(plan.Options{Base: base, Head: r.commit(map[string]string{"k/kernel.yaml": tritonManifest, "k/reference.c": "", "k/reference.cu": "// truth on the GPU\n"}), Kernels: []string{"k"}})
	if err != nil || len(job.Broken) > 0 || job.Baseline != nil {
		t.Fatal(err, job.Broken, job.Baseline)
	}
	if len(job.Notes) != 1 || !strings.HasPrefix(job.Notes[0], "The base's manifest has a mistake") {
		t.Errorf("the notes are %q", job.Notes)
	}
	if got := r.read(job.Trusted, "reference.cu"); got != "// truth on the GPU\n" || len(job.Candidate.Differs) > 0 {
		t.Errorf("the reference is %q, and the candidate lacks %v", got, job.Candidate.Differs)
	}
	still := r.commit(map[string]string{"k/kernel.yaml": strings.Replace(mistaken, "reference.c,", "truth.c,", 1)})
	if _, err := r.job(plan.Options{Base: base, Head: still, Kernels: []string{"k"}}); err == nil || !strings.Contains(err.Error(), "is no CUDA file") {
		t.Errorf("a mistaken repair: %v", err)
	}
}
