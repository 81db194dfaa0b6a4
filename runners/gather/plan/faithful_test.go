package plan_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// TestLaidOutAsAMergeIs checks random repositories and changes, on a base branch that has moved on.
// Every file of the folders to build equals, byte by byte, the file in a fresh checkout of the
// merge, or is reported as different. No equal file is reported.
func TestLaidOutAsAMergeIs(t *testing.T) {
	for seed := range uint64(long.Times(6, 24)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := newTree(t)
			w := randomTree{tree: r, rand: rand.New(rand.NewPCG(seed, 7))}
			files := maps.Clone(randomBase)
			if seed%3 == 0 {
				w.library = library(t)
				files["k/kernel.yaml"] = strings.Replace(files["k/kernel.yaml"], "include: [common]", "include: [common, lib/include]", 1)
				r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", w.library.dir, "lib")
			}
			base := w.commit(files, true)
			tip := w.commit(w.edits(), false)
			w.checkout(base)
			head := w.commit(w.edits(), false)
			w.checkout(tip)
			if _, err := r.try("merge", "--quiet", "--no-edit", head); err != nil {
				return // GitHub would refuse to merge it too
			}
			job, err := r.plan(plan.Options{Base: base, Head: head, Trusted: tip, Kernels: []string{"k/kernel.yaml"}}).Job(t.Context(), "k")
			if err != nil {
				if strings.Contains(err.Error(), "file on one side and a folder on the other") {
					return // refused
				}
				t.Fatal(err)
			}
			if len(job.Broken) > 0 {
				return // refused
			}
			fresh := t.TempDir()
			r.git("-c", "protocol.file.allow=always", "clone", "--quiet", "--recurse-submodules", r.dir, fresh)
			w.compare(job, fresh)
		})
	}
}

var randomBase = map[string]string{
	".github/kernelgate.yaml": policyYAML, "k/reference.c": "// truth\n", "k/scale.c": "// $Id$\n#include \"a.h\"\n", "k/a.h": "// a\n", "k/B.h": "// B\n", "k/b.h": "// b\n",
	"k/deep/c.h": "// c\r\n", "k/table.txt": "1\n", "common/x.h": "// x\n", "common/deep/y.h": "// y\n", "docs/notes.md": "notes\n",
	"k/kernel.yaml": strings.Replace(manifestYAML, "source: scale.c", "source: scale.c\ninclude: [common]", 1),
}

// A randomTree draws random edits.
type randomTree struct {
	*tree
	rand *rand.Rand
	// library is the submodule at lib, with a branch for each commit that it may be at; nil for
	// none.
	library *tree
}

// library makes a repository for a submodule. In one of its commits git converts the files that it
// checks out.
func library(t *testing.T) *tree {
	r := newTree(t)
	for i, files := range []map[string]string{
		{"include/l.h": "// $Id$ one\n", "src/l.c": "// one\n"},
		{"include/l.h": "// $Id$ two\n", "include/m.h": "// m\n"},
		{".gitattributes": "*.h ident\n"},
	} {
		r.commit(files)
		r.git("branch", fmt.Sprint("version", i))
	}
	return r
}

// checkout checks out a commit and its submodule.
func (w randomTree) checkout(rev string) {
	w.Helper()
	w.git("checkout", "--quiet", rev)
	if w.library != nil {
		w.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update")
	}
}

// commit is the tree's commit with one more object that is not a plain file.
func (w randomTree) commit(files map[string]string, odd bool) string {
	w.Helper()
	if odd || w.rand.IntN(2) == 0 {
		at := filepath.Join(w.dir, []string{"k/link.h", "common/link.h", "k/deep/link.h"}[w.rand.IntN(3)])
		_ = os.Remove(at)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink([]string{"a.h", "../docs/notes.md", "/etc/passwd"}[w.rand.IntN(3)], at)); err != nil {
			w.Fatal(err)
		}
		w.git("add", "--all")
	}
	if w.library != nil && (odd || w.rand.IntN(2) == 0) {
		w.git("-C", "lib", "checkout", "--quiet", w.library.git("rev-parse", fmt.Sprint("version", w.rand.IntN(3))))
	}
	return w.tree.commit(files)
}

// edits changes, adds and deletes a few files.
func (w randomTree) edits() map[string]string {
	names := []string{"k/scale.c", "k/a.h", "k/B.h", "k/b.h", "k/deep/c.h", "k/deep/new.h", "k/table.txt", "k/new.h", "k/new.txt", "k/.gitattributes", ".gitattributes", "common/x.h", "common/deep/y.h", "common/new.h", "docs/notes.md", "k/other.kernel.yaml"}
	attributes := []string{"*.h ident\n", "*.c eol=crlf\n", "* text=auto eol=lf\n", "[attr]odd ident eol=crlf\n*.h odd\n", "deep/** working-tree-encoding=UTF-16LE\n", "*.h ident\na.h -ident\n"}
	files := map[string]string{}
	for range 1 + w.rand.IntN(4) {
		name := names[w.rand.IntN(len(names))]
		switch {
		case strings.HasSuffix(name, ".gitattributes"):
			files[name] = attributes[w.rand.IntN(len(attributes))]
		case strings.HasSuffix(name, ".kernel.yaml"):
			files[name] = strings.Replace(manifestYAML, "name: scale", "name: other", 1)
		case w.rand.IntN(5) == 0 && randomBase[name] != "" && name != "k/scale.c":
			files[name] = "" // deleted
		default:
			files[name] = fmt.Sprintf("// $Id$ %d\n", w.rand.IntN(1000))
		}
	}
	return files
}

// compare compares the candidate's folder with a checkout.
func (w randomTree) compare(job runners.Job, fresh string) {
	w.Helper()
	told := map[string]string{}
	for _, d := range job.Candidate.Differs {
		told[d.Path] = d.Why
	}
	// A file that git converts may come out unchanged by chance.
	converts := slices.ContainsFunc([]string{".gitattributes", "k/.gitattributes", "lib/.gitattributes"}, func(name string) bool { _, err := os.Stat(filepath.Join(fresh, name)); return err == nil })
	repository := filepath.Join(job.Candidate.Dir, manifest.RepositoryFolder)
	folders := map[string]string{"k": job.Candidate.Dir, "common": filepath.Join(repository, "common")}
	if w.library != nil {
		folders["lib/include"] = filepath.Join(repository, "lib/include")
	}
	for folder, dir := range folders {
		names := append(filesBelow(w, dir), filesBelow(w, filepath.Join(fresh, folder))...)
		slices.Sort(names)
		for _, rel := range slices.Compact(names) {
			name := path.Join(folder, rel)
			if strings.HasPrefix(rel, manifest.RepositoryFolder+"/") {
				continue
			}
			built, missing1 := os.ReadFile(filepath.Join(dir, rel))
			checked, missing2 := os.ReadFile(filepath.Join(fresh, name))
			info, err := os.Lstat(filepath.Join(fresh, name))
			same := (missing1 == nil) == (missing2 == nil) && string(built) == string(checked) && (err != nil || info.Mode().IsRegular())
			if _, ok := told[name]; !ok && !same {
				w.Errorf("%s is built as %q (%v), a checkout has %q (%v), and nobody is told", name, built, missing1, checked, missing2)
			} else if ok && same && !strings.Contains(told[name], "update the branch") && !converts {
				w.Errorf("%s is the same, and it is told that %s", name, told[name])
			}
		}
	}
}

func filesBelow(t randomTree, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}
