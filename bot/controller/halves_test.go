package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// bring opens a pull request with files.
func (w *world) bring(branch string, files map[string]string) *embedded.PR {
	w.Helper()
	_, err := w.repo.Push(branch, files, branch)
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: branch, Head: branch, Author: "walt"})
	w.no(err)
	return pr
}

// staged is the kernel with a variant more, which is the default.
func staged(t *testing.T) string {
	t.Helper()
	text := strings.Replace(manifestYAML, "source: scale.c\n", "variants:\n  first: {source: scale.c}\n  second: {source: second.c, flags: [-O3]}\ndefault_variant: second\n", 1)
	if text == manifestYAML {
		t.Fatal("the manifest has no source")
	}
	return text
}

// A new variant in a new file, made the default, is compared with the base's default; it
// is no change of the rules, and once it is merged the next one is compared with it.
func TestNewDefaultVariant(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	broken := w.bring("broken", map[string]string{"kernels/scale/kernel.yaml": staged(t), "kernels/scale/second.c": "// BROKEN\n"})
	w.concluded(broken.HeadSHA(), "failure")
	w.said(broken, "does not build")
	w.said(broken, "second.c:1")
	pr := w.bring("second", map[string]string{"kernels/scale/kernel.yaml": staged(t), "kernels/scale/second.c": "// speed 1.3\n"})
	w.concluded(pr.HeadSHA(), "success")
	w.said(pr, "PASS")
	w.no(pr.Merge("olga"))
	w.settle()
	slower := w.bring("slower", map[string]string{"kernels/scale/second.c": "// speed 1.1\n"})
	w.concluded(slower.HeadSHA(), "failure")
	w.said(slower, "DEFER")
}

// A head that loosens the tolerance is judged by the base's, told so field by field, and
// still has its change of the rules approved by somebody.
func TestProblemIsTheBases(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	lax := strings.Replace(strings.Replace(manifestYAML, "abs: 0.1", "abs: 99", 1), "entry: scale\n", "entry: scale\nflags: [-O3]\n", 1)
	pr := w.bring("lax", map[string]string{"kernels/scale/kernel.yaml": lax, "kernels/scale/scale.c": "// WRONG speed 9\n"})
	w.said(pr, "tolerance.abs: 0.1 → 99")
	w.said(pr, "DEFER · `scale`: the output is wrong")
	w.settle()
	if err := pr.Merge("olga"); err == nil {
		t.Error("a wrong kernel was merged by its own tolerance")
	}
	// The implementation alone is nobody's rule.
	own := w.bring("own", map[string]string{"kernels/scale/kernel.yaml": strings.Replace(manifestYAML, "entry: scale\n", "entry: scale\nflags: [-O3]\n", 1), "kernels/scale/scale.c": "// speed 1.4\n"})
	w.concluded(own.HeadSHA(), "success")
}

// A manifest that cannot be built by, and limits that leave out what the policy asks for,
// are the author's to mend, and cost no runner anything.
func TestHeadsManifestIsWrong(t *testing.T) {
	w := newWorld(t, worldOptions{})
	for name, c := range map[string]struct{ manifest, says string }{
		"a variant that is not there": {strings.Replace(staged(t), "default_variant: second", "default_variant: third", 1), "default_variant"},
		"a shape that is shed":        {strings.Replace(staged(t), "source: second.c,", "source: second.c, limits: {N: 1..500},", 1), "leave out the shapes mission"},
		"a folder outside":            {strings.Replace(staged(t), "entry: scale", "include: [../../etc]\nentry: scale", 1), "is not a folder of the repository"},
	} {
		branch := strings.ReplaceAll(name, " ", "-")
		pr := w.bring(branch, map[string]string{"kernels/scale/kernel.yaml": c.manifest, "kernels/scale/second.c": "// speed 9\n"})
		w.said(pr, "DEFER")
		w.said(pr, c.says)
		w.said(pr, "kernels/scale/kernel.yaml:")
		w.settle()
		if err := pr.Merge("olga"); err == nil {
			t.Errorf("%s: it was merged", name)
		}
	}
}

// A header that two kernels read is a change of both, and of no other.
func TestSharedHeader(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	files := map[string]string{"common/twice.h": "// 2\n", "common/other.h": "// 3\n"}
	for name, source := range map[string]string{"alpha": "// speed 1\n#include <twice.h>\n", "beta": "// speed 1\n#include \"twice.h\"\n", "gamma": "// speed 1\n#include \"other.h\"\n"} {
		files["kernels/"+name+"/scale.c"], files["kernels/"+name+"/reference.c"] = source, "// the truth\n"
		files["kernels/"+name+"/kernel.yaml"] = strings.NewReplacer("name: scale\n", "name: "+name+"\n", "source: scale.c\n", "source: scale.c\ninclude: [common]\n").Replace(manifestYAML)
	}
	_, err := w.repo.Push("main", files, "Three more")
	w.no(err)
	w.settle()
	pr := w.bring("header", map[string]string{"common/twice.h": "// two\n"})
	w.concluded(pr.HeadSHA(), "failure") // the machine code is the same: nothing was gained
	for name, gated := range map[string]bool{"alpha": true, "beta": true, "gamma": false, "scale": false} {
		if _, is := w.repo.Check(pr.HeadSHA(), "kernelgate / "+name); is != gated {
			t.Errorf("%s is gated: %v", name, is)
		}
	}
}
