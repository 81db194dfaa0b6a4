package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A pull request that passed is judged again when the base branch gets a faster kernel: it is compared with what it would replace,
// and not with where it left the branch.
func TestBaseBranchGetsFaster(t *testing.T) {
	w := newWorld(t, worldOptions{})
	mine := strings.Replace(manifestYAML, "source: scale.c", "source: mine.c", 1)
	if mine == manifestYAML {
		t.Fatal("the manifest has another source")
	}
	_, err := w.repo.Push("mine", map[string]string{"kernels/scale/mine.c": "// speed 1.5\n", "kernels/scale/kernel.yaml": mine}, "Mine")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Head: "mine", Title: "Mine", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	_, err = w.repo.Push("main", map[string]string{sourceFile: "// speed 3.0\n"}, "Three times as fast, by somebody else")
	w.no(err)
	c := w.concluded(pr.HeadSHA(), "failure")
	if !strings.Contains(c.Title, "regression") && !strings.Contains(c.Title, "too-slow") {
		t.Error(c.Title)
	}
	// Where nothing that is built or compared has changed, the verdict stands.
	_, err = w.repo.Push("main", map[string]string{"README.md": "More.\n"}, "Notes")
	w.no(err)
	w.settle()
	if again, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); again.Title != c.Title {
		t.Errorf("%s, it was %s", again.Title, c.Title)
	}
}
