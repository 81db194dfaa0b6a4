package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
)

// several is a folder of kernels that was not made for this program: three manifests, one of which
// has its sources in a different folder.
func several(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		".github/kernelgate.yaml": policyYAML,
		"k/kernel.yaml":           manifestYAML, "k/scale.c": "#include \"both.h\"\n", "k/reference.c": "// truth\n",
		"k/twice.kernel.yaml": edited(t, manifestYAML, "name: scale", "name: double_it", "source: scale.c", "source: twice.c", "source: reference.c", "source: twice_reference.c"),
		"k/twice.c":           "#include \"both.h\"\n#include \"twice.h\"\n", "k/twice_reference.c": "#include \"truth.h\"\n", "k/truth.h": "// t\n",
		"k/both.h": "// both\n", "k/twice.h": "// twice\n", "k/notes.md": "x\n",
		"k/norm.kernel.yaml": edited(t, manifestYAML, "name: scale", "name: norm", "source: scale.c", "root: csrc/norm\nsource: norm.c\ninclude: [common]", "source: reference.c", "source: norm_reference.c"),
		"k/norm_reference.c": "// truth\n", "csrc/norm/norm.c": "#include \"norm.h\"\n#include \"../../common/a.h\"\n", "csrc/norm/norm.h": "// n\n", "csrc/norm/other.c": "// o\n", "common/a.h": "// a\n", "common/b.h": "// b\n",
	}
}

// TestSeveralInOneFolder checks that a change touches the kernels that read the files it edits, and
// no others in their folder.
func TestSeveralInOneFolder(t *testing.T) {
	const scale, twice, norm = "k", "k/twice.kernel.yaml", "k/norm.kernel.yaml"
	r := newTree(t)
	base := r.commit(several(t))
	for name, c := range map[string]struct {
		edit map[string]string
		want string
	}{
		"a source":                   {map[string]string{"k/scale.c": "// faster\n"}, scale},
		"another's":                  {map[string]string{"k/twice.c": "// faster\n"}, twice},
		"a header of one":            {map[string]string{"k/twice.h": "// x\n"}, twice},
		"a header of two":            {map[string]string{"k/both.h": "// x\n"}, scale + " " + twice},
		"a header that is gone":      {map[string]string{"k/both.h": ""}, scale + " " + twice},
		"a reference":                {map[string]string{"k/twice_reference.c": "// x\n"}, twice},
		"what a reference includes":  {map[string]string{"k/truth.h": "// x\n"}, twice},
		"notes":                      {map[string]string{"k/notes.md": "y\n"}, ""},
		"a manifest":                 {map[string]string{"k/kernel.yaml": manifestYAML + "# x\n"}, scale},
		"another manifest":           {map[string]string{norm: several(t)[norm] + "# x\n"}, norm},
		"a new one":                  {map[string]string{"k/more.kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: more.c"), "k/more.c": "// m\n"}, "k/more.kernel.yaml"},
		"one that is gone":           {map[string]string{twice: ""}, twice},
		"a source elsewhere":         {map[string]string{"csrc/norm/norm.c": "// x\n"}, norm},
		"its header":                 {map[string]string{"csrc/norm/norm.h": "// x\n"}, norm},
		"a header by its way there":  {map[string]string{"common/a.h": "// x\n"}, norm},
		"one that is not read":       {map[string]string{"common/b.h": "// x\n", "csrc/norm/other.c": "// x\n"}, ""},
		"a header that hides it":     {map[string]string{"k/sneaky.h": "// x\n", "k/scale.c": "#define H \"sneaky.h\"\n#include H\n"}, scale},
		"a hidden name beside a dot": {map[string]string{"k/.kernel.yaml": manifestYAML}, ""},
	} {
		head := r.commit(c.edit)
		keys, err := r.plan(plan.Options{Base: base, Head: head}).Kernels(t.Context())
		if err != nil || strings.Join(keys, " ") != c.want {
			t.Errorf("%s: the change touches %q (%v), want %q", name, keys, err, c.want)
		}
		r.git("checkout", "--quiet", base)
	}
	// The includes of a source in another language are unknown.
	python := r.commit(map[string]string{"k/scale.py": "from helper import scale\n", "k/helper.py": "# h\n", "k/kernel.yaml": edited(t, tritonYAML, "root: src\n", "", "include: [common]\n", "", "source: kernelpkg/ops/scale.py", "source: scale.py\nsources: ['*.py']")})
	if keys, err := r.plan(plan.Options{Base: python, Head: r.commit(map[string]string{"k/helper.py": "# worse\n"})}).Kernels(t.Context()); err != nil || strings.Join(keys, " ") != scale {
		t.Errorf("another language: the change touches %q (%v)", keys, err)
	}
	r.git("checkout", "--quiet", base)
	// If an include hides the name of its file, every kernel that might read the file counts as
	// reading it.
	hidden := r.commit(map[string]string{"k/scale.c": "#define H \"sneaky.h\"\n#include H\n", "k/sneaky.h": "// s\n"})
	keys, err := r.plan(plan.Options{Base: hidden, Head: r.commit(map[string]string{"k/sneaky.h": "// worse\n"})}).Kernels(t.Context())
	if err != nil || strings.Join(keys, " ") != scale {
		t.Errorf("a hidden header touches %q (%v)", keys, err)
	}
}

// TestJobsOfOneFolder checks that kernels of one folder share nothing that is built, and that each
// is judged by its own manifest.
func TestJobsOfOneFolder(t *testing.T) {
	r := newTree(t)
	base := r.commit(several(t))
	head := r.commit(map[string]string{"k/both.h": "// both, faster\n", "csrc/norm/norm.h": "// faster\n"})
	p := r.plan(plan.Options{Base: base, Head: head})
	keys, err := p.Kernels(t.Context())
	if err != nil || len(keys) != 3 {
		t.Fatalf("%v %v", keys, err)
	}
	rooms := map[string]bool{}
	for _, key := range keys {
		job, err := p.Job(t.Context(), key)
		if err != nil || len(job.Broken) > 0 {
			t.Fatalf("%s: %v %v", key, err, job.Broken)
		}
		for _, dir := range []string{job.Trusted, job.Candidate.Dir} {
			if rooms[dir] {
				t.Errorf("%s is built in %s, as another is", key, dir)
			}
			rooms[dir] = true
		}
		m := job.Of(job.Candidate)
		v, err := m.Variant(job.Candidate.Variant)
		if err != nil || r.read(job.Candidate.Dir, m.SourceFile(v)) != r.read(job.Baseline.Dir, m.SourceFile(v)) {
			t.Errorf("%s: the sources differ (%v)", key, err)
		}
		if !strings.HasSuffix(job.Provenance.Command, " "+filepath.Base(key)) || job.Key != key {
			t.Errorf("%s: %s is repeated by %q", key, job.Key, job.Provenance.Command)
		}
		if m.Name != "norm" {
			continue
		}
		const header = ".repository/csrc/norm/norm.h"
		if was, is := r.read(job.Baseline.Dir, header), r.read(job.Candidate.Dir, header); was != "// n\n" || is != "// faster\n" {
			t.Errorf("the baseline has %q and the candidate %q", was, is)
		}
		if _, err := os.Stat(filepath.Join(job.Candidate.Dir, "scale.c")); err == nil {
			t.Error("a kernel with its sources elsewhere is built among those of its manifest's folder")
		}
	}
}

// TestNames checks that a kernel is found by its folder or manifest, by the last part of that, and
// by its own name.
func TestNames(t *testing.T) {
	r := newTree(t)
	base := r.commit(several(t))
	for name, want := range map[string]string{
		"k": "k", "k/": "k", "k/kernel.yaml": "k", "scale": "k", "double_it": "k/twice.kernel.yaml", "twice": "k/twice.kernel.yaml", "twice.kernel.yaml": "k/twice.kernel.yaml",
		"k/twice.kernel.yaml": "k/twice.kernel.yaml", "norm": "k/norm.kernel.yaml",
	} {
		keys, err := r.plan(plan.Options{Base: base, Head: base, Kernels: []string{name}}).Kernels(t.Context())
		if err != nil || strings.Join(keys, " ") != want {
			t.Errorf("%s is %q (%v), want %s", name, keys, err, want)
		}
	}
	var bad usage.Error
	if _, err := r.plan(plan.Options{Base: base, Head: base, Kernels: []string{"nobody"}}).Kernels(t.Context()); !errors.As(err, &bad) || !strings.Contains(err.Error(), "there are k, k/norm.kernel.yaml, k/twice.kernel.yaml") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	for name, want := range map[string]string{"doubleit": "did you mean double_it? There are k,", "nrom": "did you mean norm?"} {
		if _, err := r.plan(plan.Options{Base: base, Head: base, Kernels: []string{name}}).Kernels(t.Context()); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mistaken := r.commit(map[string]string{"m/kernel.yaml": edited(t, manifestYAML, "name: scale", "name: rope", "mode: cpu", "mode: gpu")})
	if _, err := r.plan(plan.Options{Base: mistaken, Head: mistaken, Kernels: []string{"rope"}}).Kernels(t.Context()); !errors.As(err, &bad) || !strings.Contains(err.Error(), "no name can be read from m/kernel.yaml, which has a mistake: see kernelgate policy lint m/kernel.yaml") {
		t.Errorf("a kernel whose manifest has a mistake: %v", err)
	}
	r.commit(map[string]string{"m/kernel.yaml": ""})
	other := r.commit(map[string]string{"k/more.kernel.yaml": edited(t, manifestYAML, "name: scale", "name: norm")})
	if _, err := r.plan(plan.Options{Base: other, Head: other, Kernels: []string{"norm"}}).Kernels(t.Context()); !errors.As(err, &bad) || !strings.Contains(err.Error(), `"norm" is several kernels (write one of k/more.kernel.yaml, k/norm.kernel.yaml)`) {
		t.Errorf("two kernels of one name: %v", err)
	}
}

// TestMovedSources checks that each side decides where its sources are. They may move to a
// different folder and back, and each side is built from the place that its manifest names.
func TestMovedSources(t *testing.T) {
	r := newTree(t)
	there := edited(t, manifestYAML, "source: scale.c", "root: csrc\nsource: scale.c")
	inside := r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": manifestYAML, "k/scale.c": "// here\n", "k/reference.c": "// truth\n"})
	outside := r.commit(map[string]string{"k/kernel.yaml": there, "k/scale.c": "", "csrc/scale.c": "// there\n"})
	further := r.commit(map[string]string{"k/kernel.yaml": edited(t, there, "root: csrc", "root: lib/deep"), "csrc/scale.c": "", "lib/deep/scale.c": "// deep\n"})
	for name, c := range map[string]struct{ base, head, was, is string }{
		"out":     {inside, outside, "// here\n", "// there\n"},
		"back":    {outside, inside, "// there\n", "// here\n"},
		"further": {outside, further, "// there\n", "// deep\n"},
	} {
		p := r.plan(plan.Options{Base: c.base, Head: c.head})
		if keys, err := p.Kernels(t.Context()); err != nil || strings.Join(keys, " ") != "k" {
			t.Fatalf("%s: it touches %q (%v)", name, keys, err)
		}
		job, err := p.Job(t.Context(), "k")
		if err != nil || len(job.Broken) > 0 || len(job.Notes) > 0 {
			t.Fatalf("%s: %v %v %v", name, err, job.Broken, job.Notes)
		}
		b, h := job.Of(*job.Baseline), job.Of(job.Candidate)
		if was, is := r.read(job.Baseline.Dir, b.SourceFile(b.Variants[0])), r.read(job.Candidate.Dir, h.SourceFile(h.Variants[0])); was != c.was || is != c.is {
			t.Errorf("%s: the baseline is built from %q and the candidate from %q", name, was, is)
		}
		if r.read(job.Trusted, "reference.c") != "// truth\n" {
			t.Errorf("%s: the reference is not the base's", name)
		}
	}
}

// TestHostileRoot checks that nothing leads out of the repository: neither a link in a commit, nor
// one in the work tree.
func TestHostileRoot(t *testing.T) {
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "scale.c"), []byte("// secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ root, want string }{
		"above":   {"../secrets", `k/kernel.yaml:5: root: "../secrets" is not a folder of the repository`},
		"a link":  {"outside", "k/kernel.yaml:5: root: the head has no file in the folder outside"},
		"through": {"outside/deep", "k/kernel.yaml:5: root: the head has no file in the folder outside/deep"},
		"nowhere": {"missing", "k/kernel.yaml:5: root: the head has no file in the folder missing"},
	} {
		r := newTree(t)
		base := r.commit(first)
		if err := os.Symlink(secret, filepath.Join(r.dir, "outside")); err != nil {
			t.Fatal(err)
		}
		head := r.commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "root: "+c.root+"\nsource: scale.c")})
		for _, rev := range []string{head, ""} {
			job, err := r.job(plan.Options{Base: base, Head: rev})
			if err != nil || len(job.Broken) == 0 {
				t.Fatalf("%s: it is taken (%v)", name, err)
			}
			if got := job.BrokenEvidence().Candidate.Error; !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	}
	r := newTree(t)
	there := edited(t, manifestYAML, "source: scale.c", "root: csrc\nsource: scale.c")
	base := r.commit(map[string]string{".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": there, "k/reference.c": "// truth\n", "csrc/scale.c": "// there\n"})
	if err := errors.Join(os.RemoveAll(filepath.Join(r.dir, "csrc")), os.Symlink(secret, filepath.Join(r.dir, "csrc"))); err != nil {
		t.Fatal(err)
	}
	job, err := r.job(plan.Options{Base: base, Head: "", Kernels: []string{"k"}})
	if err == nil && len(job.Broken) == 0 {
		t.Errorf("a link in the work tree is followed: %q", r.read(job.Candidate.Dir, ".repository/csrc/scale.c"))
	}
}

// TestDiffers checks that every file that differs between a merge and the folder to build is
// reported: the builder refuses a source that asks for it.
func TestDiffers(t *testing.T) {
	r := newTree(t)
	files := map[string]string{".github/kernelgate.yaml": policyYAML, "k/kernel.yaml": manifestYAML, "k/reference.c": "// truth\n", "k/scale.c": "#include \"table.inc\"\n#include \"detail/deep.h\"\n", "k/table.inc": "// t\n", "k/detail/deep.h": "// d\n", "k/detail/free.h": "// f\n", "k/old.c": "// old\n", "k/notes.md": "x\n"}
	base := r.commit(files)
	narrow := edited(t, manifestYAML, "source: scale.c", "source: scale.c\nsources: [scale.c]")
	told := func(job runners.Job) string {
		var all []string
		for _, d := range job.Candidate.Differs {
			all = append(all, d.Path)
		}
		return strings.Join(all, " ")
	}
	for name, c := range map[string]struct {
		edit map[string]string
		want string
	}{
		"a table":            {map[string]string{"k/table.inc": "// worse\n"}, "k/table.inc"},
		"a header below":     {map[string]string{"k/detail/deep.h": "// worse\n"}, "k/detail/deep.h"},
		"one that is gone":   {map[string]string{"k/table.inc": ""}, "k/table.inc"},
		"two":                {map[string]string{"k/detail/free.h": "// worse\n", "k/notes.md": "y\n"}, "k/detail/free.h k/notes.md"},
		"a source":           {map[string]string{"k/scale.c": "// better\n"}, ""},
		"the manifest":       {map[string]string{"k/kernel.yaml": narrow}, "k/kernel.yaml"},
		"another manifest":   {map[string]string{"k/v2.kernel.yaml": manifestYAML}, "k/v2.kernel.yaml"},
		"the reference":      {map[string]string{"k/reference.c": "// lie\n"}, "k/reference.c"},
		"a new source":       {map[string]string{"k/new.c": "// new\n"}, ""},
		"what git converts":  {map[string]string{".gitattributes": "*.c ident\n", "k/scale.c": "// $Id$\n"}, "k/scale.c"},
		"nothing to convert": {map[string]string{".gitattributes": "*.c ident\n* text=auto eol=lf\n", "k/scale.c": "// plain\n"}, ""},
	} {
		job, err := r.job(plan.Options{Base: base, Head: r.commit(c.edit), Kernels: []string{"k/kernel.yaml"}})
		switch {
		case err != nil:
			t.Fatal(err)
		case told(job) != c.want:
			t.Errorf("%s: %v, want %s", name, job.Candidate.Differs, c.want)
		}
		r.git("checkout", "--quiet", base)
	}
	// A file that existed and was not a source does not become one by the change that edits it.
	base = r.commit(map[string]string{"k/kernel.yaml": narrow})
	job, err := r.job(plan.Options{Base: base, Head: r.commit(map[string]string{"k/kernel.yaml": edited(t, manifestYAML, "source: scale.c", "source: old.c"), "k/old.c": "// worse\n"})})
	if err != nil || told(job) != "k/kernel.yaml k/old.c" {
		t.Errorf("%v %v", err, job.Candidate.Differs)
	}
	// A build never has a link, whether or not the change made it.
	if err := os.Symlink("../.github/kernelgate.yaml", filepath.Join(r.dir, "k", "link.h")); err != nil {
		t.Fatal(err)
	}
	linked := r.commit(nil)
	if job, err = r.job(plan.Options{Base: linked, Head: r.commit(map[string]string{"k/scale.c": "// other\n"})}); err != nil || told(job) != "k/link.h" || len(job.Baseline.Differs) != 1 {
		t.Errorf("%v %v", err, job.Candidate.Differs)
	}
}
