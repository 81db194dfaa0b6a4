package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// Two kernels of one folder have checks, attempts and commands of their own; one of them has
// its source in another folder.
func TestTwoKernelsOfOneFolder(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	second := strings.NewReplacer("name: scale\n", "name: twice\n", "source: scale.c\n", "root: csrc\nsource: twice.c\n").Replace(manifestYAML)
	const key = "kernels/scale/twice.kernel.yaml"
	_, err := w.repo.Push("main", map[string]string{key: second, "csrc/twice.c": "// speed 1.0\n"}, "Another")
	w.no(err)
	w.settle()
	pr := w.bring("both", map[string]string{"kernels/scale/scale.c": "// speed 1.4\n", "csrc/twice.c": "// speed 1.01\n"})
	w.concluded(pr.HeadSHA(), "failure")
	for kernel, want := range map[string]string{"scale": "success", "twice": "failure"} {
		if c, ok := w.repo.Check(pr.HeadSHA(), "kernelgate / "+kernel); !ok || c.Conclusion != want {
			t.Errorf("%s concludes %q, want %s", kernel, c.Conclusion, want)
		}
	}
	w.reacted(pr, w.comment(pr, "walt", "/rebench "+key+" rounds=3"), "rocket")
	w.concluded(pr.HeadSHA(), "failure")
	for folder, want := range map[string]int{"kernels/scale": 1, key: 2} {
		id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
		w.poll("the attempts at "+folder, func() bool { // the ledger follows the journal
			runs, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Change: id, Folder: folder, Phase: change.Done})
			return err == nil && len(runs) == want
		})
	}
	alone := w.bring("alone", map[string]string{"csrc/twice.c": "// speed 1.5\n"})
	w.concluded(alone.HeadSHA(), "success")
	if _, is := w.repo.Check(alone.HeadSHA(), "kernelgate / scale"); is {
		t.Error("a change of one kernel of the folder gates the other")
	}
}
