package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// TestSubmodule checks that a submodule counts as a folder of the repository. Each side gets it at
// the commit that its own tree names, and a different commit touches every kernel that includes
// from it. If it is not available, nobody is blamed, and the message has the command that fetches
// it.
func TestSubmodule(t *testing.T) {
	lib := newTree(t)
	old := lib.commit(map[string]string{"include/lib/a.h": "// one\n", "README.md": "x\n"})
	young := lib.commit(map[string]string{"include/lib/a.h": "// two\n"})

	r := newTree(t)
	with := edited(t, manifestYAML, "source: scale.c", "source: scale.c\ninclude: [common, third_party/lib/include]")
	r.commit(map[string]string{
		".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": with, "k/scale.c": "#include <lib/a.h>\n", "k/reference.c": "// truth\n",
		"other/kernel.yaml": manifestYAML, "other/scale.c": "// other\n", "other/reference.c": "// truth\n", "common/free.h": "// f\n",
	})
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "third_party/lib")
	r.git("-C", "third_party/lib", "checkout", "--quiet", old)
	base := r.commit(nil)
	r.git("-C", "third_party/lib", "checkout", "--quiet", young)
	head := r.commit(nil)

	const header = ".repository/third_party/lib/include/lib/a.h"
	for name, rev := range map[string]string{"commit": head, "work tree": ""} {
		job, err := r.job(plan.Options{Base: base, Head: rev}) // it touches only k
		if err != nil || job.Key != "k" || job.Unready != "" || len(job.Broken) > 0 {
			t.Fatalf("%s: %s %v %q %v", name, job.Key, err, job.Unready, job.Broken)
		}
		if was, is := r.read(job.Baseline.Dir, header), r.read(job.Candidate.Dir, header); was != "// one\n" || is != "// two\n" {
			t.Errorf("%s: the baseline has %q and the candidate %q", name, was, is)
		}
	}
	// The includes of a submodule's headers are unknown: they may read any header next to the
	// submodule.
	beside := r.commit(map[string]string{"common/free.h": "// g\n"})
	if job, err := r.job(plan.Options{Base: head, Head: beside}); err != nil || job.Key != "k" {
		t.Errorf("%s %v", job.Key, err)
	}
	// A commit that was not fetched, and a submodule that is not checked out.
	unready := func(name, base, head, want string) {
		t.Helper()
		job, err := r.job(plan.Options{Base: base, Head: head})
		if err != nil || !strings.Contains(job.Unready, want) {
			t.Fatalf("%s: %v %q, want %s", name, err, job.Unready, want)
		}
		if e := job.UnreadyEvidence(); !e.Setup || e.Fault != job.Unready || e.Candidate != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	far := lib.commit(map[string]string{"include/lib/a.h": "// three\n"})
	r.git("update-index", "--cacheinfo", "160000,"+far+",third_party/lib")
	r.git("commit", "--quiet", "-m", "far")
	unready("a commit", beside, r.git("rev-parse", "HEAD"), "the submodule third_party/lib: it does not have the commit "+far[:12]+" (run: git -C third_party/lib fetch origin "+far+")")
	r.git("reset", "--hard", "--quiet", head)
	r.git("submodule", "--quiet", "deinit", "--force", "third_party/lib")
	unready("not checked out", base, head, "k/kernel.yaml needs the submodule third_party/lib: it is not checked out (run: git submodule update --init third_party/lib)")

	// A mirror has no submodules.
	p, err := plan.New(t.Context(), plan.Options{Repo: checkout.OpenBare(filepath.Join(r.dir, ".git")), Base: base, Head: head, Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := p.Kernels(t.Context()); err != nil || strings.Join(keys, " ") != "k" {
		t.Fatalf("%v %v", keys, err)
	}
	job, err := p.Job(t.Context(), "k")
	if err != nil || !strings.Contains(job.Unready, "submodules are not fetched here (keep the headers in the repository, or name them as a set that the runner has") {
		t.Errorf("%v %q", err, job.Unready)
	}
}

// TestLinkAsSubmodule checks that a link in a submodule's place leads nowhere.
func TestLinkAsSubmodule(t *testing.T) {
	lib := newTree(t)
	lib.commit(map[string]string{"a.h": "// one\n"})
	r := newTree(t)
	with := edited(t, manifestYAML, "source: scale.c", "source: scale.c\ninclude: [lib]")
	r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": with, "k/scale.c": "#include <a.h>\n", "k/reference.c": "// truth\n"})
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "lib")
	base := r.commit(nil)
	if err := os.RemoveAll(filepath.Join(r.dir, "lib")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(lib.dir, filepath.Join(r.dir, "lib")); err != nil {
		t.Fatal(err)
	}
	job, err := r.job(plan.Options{Base: base, Head: base, Kernels: []string{"k"}})
	if err != nil || !strings.Contains(job.Unready, "the submodule lib: it is not checked out") {
		t.Errorf("a link is followed: %v %q", err, job.Unready)
	}
}
