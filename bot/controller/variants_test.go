package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	measuring "github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// numbered asks for the number of the machine code that the newest verdict on a commit rests on.
func (w *world) numbered(what, sha string, want int) {
	w.Helper()
	if got := w.evidence(sha).Performance.CodeNumber(); got != want {
		w.Errorf("%s: machine code %d, want %d", what, got, want)
	}
}

// variant is a source of the same speed and different machine code: undecided to the end.
func variant(n int) string { return fmt.Sprintf("// speed 1.1 variant %d\n", n) }

// Each distinct machine code of a pull request or of its author has the next number,
// whoever pushes it and however its attempt ends; one that was measured keeps its own.
func TestVariantsAreNumbered(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("one", variant(1), embedded.PROptions{Title: "One"})
	w.concluded(pr.HeadSHA(), "failure")
	w.numbered("the first variant", pr.HeadSHA(), 1)
	w.numbered("the second", w.push(pr, "one", sourceFile, variant(2), "failure"), 2)
	w.said(pr, "This is machine code 2 of this change or its author")
	w.numbered("the first again", w.push(pr, "one", sourceFile, variant(1), "failure"), 1)
	w.rebench(pr, "/rebench rounds=2", "failure")
	w.numbered("a rebench of it", pr.HeadSHA(), 1)

	// A cancelled attempt was a look at a machine code.
	_, err := w.repo.Push("one", map[string]string{sourceFile: "// HOLD speed 1.1\n"}, "Held")
	w.no(err)
	w.measuring(pr.HeadSHA())
	w.reacted(pr, w.comment(pr, "walt", "/cancel"), "rocket")
	w.concluded(pr.HeadSHA(), "cancelled")
	close(w.hold)

	// Another person pushes to the same pull request.
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "one", Files: map[string]string{sourceFile: variant(4)}, Message: "Help", Author: "mona"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	w.numbered("another person's push", pr.HeadSHA(), 4)

	// The same author opens a second pull request, another author a third.
	second := w.propose("two", variant(5), embedded.PROptions{Title: "Two"})
	w.concluded(second.HeadSHA(), "failure")
	w.numbered("the author's second pull request", second.HeadSHA(), 5)
	w.numbered("a known variant there", w.push(second, "two", sourceFile, variant(2), "failure"), 2)
	third := w.propose("three", variant(6), embedded.PROptions{Title: "Three", Author: "olga"})
	w.concluded(third.HeadSHA(), "failure")
	w.numbered("another author", third.HeadSHA(), 1)
	w.numbered("what walt measured as number 5", w.push(third, "three", sourceFile, variant(5), "failure"), 5)
	w.rebench(third, "/rebench rounds=2", "failure")
	w.numbered("and measured again", third.HeadSHA(), 5)

	// After a restart nothing is forgotten.
	w.no(w.running.stop())
	w.start()
	w.numbered("after a restart", w.push(second, "two", sourceFile, variant(7), "failure"), 6)

	// On a new baseline the author starts again; the pull request does not. What the author has open is measured again there,
	// and would take numbers before or after the new pull request, as it happens.
	w.no(pr.Close("walt"))
	w.no(second.Close("walt"))
	w.settle()
	_, err = w.repo.Push("main", map[string]string{sourceFile: "// speed 1.0 merged\n"}, "Better")
	w.no(err)
	fresh := w.propose("fresh", variant(8), embedded.PROptions{Title: "Fresh"})
	w.concluded(fresh.HeadSHA(), "failure")
	w.numbered("the author's next pull request", fresh.HeadSHA(), 1)
	w.no(pr.Reopen("walt"))
	w.concluded(pr.HeadSHA(), "failure")
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "one", From: w.repo.Head("main"), Files: map[string]string{sourceFile: variant(9)}, Message: "Rebased", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	w.numbered("the first pull request, rebased", pr.HeadSHA(), 5)
}

// A kernel folder under another name is no way to a new count: the old one is missed.
func TestRenamedKernelFolder(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("one", variant(1), embedded.PROptions{Title: "One"})
	w.concluded(pr.HeadSHA(), "failure")
	files := map[string]string{"kernels/other/kernel.yaml": manifestYAML, "kernels/other/scale.c": variant(2), "kernels/other/reference.c": "// the truth\n"}
	gone := []string{"kernels/scale/kernel.yaml", "kernels/scale/scale.c", "kernels/scale/reference.c"}
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "one", Files: files, Delete: gone, Message: "Renamed", Author: "walt"})
	w.no(err)
	c := w.concluded(pr.HeadSHA(), "failure")
	if !strings.Contains(c.Title+c.Summary, "removes the kernel") {
		t.Errorf("the check says %s\n%s", c.Title, c.Summary)
	}
}

// A runner that leaves out the number of a machine code is not believed.
func TestRunnerThatHidesTheCodeNumber(t *testing.T) {
	w := newWorld(t, worldOptions{measure: func(ctx context.Context, job measuring.Job, dir string, p measuring.Progress) (measuring.Measured, error) {
		out, err := scripted.Runner{}.Measure(ctx, job, dir, p)
		if err == nil && out.Evidence.Performance != nil {
			for i := range out.Evidence.Performance.Rounds {
				out.Evidence.Performance.Rounds[i].CodeNumber = 0
			}
		}
		return out, err
	}})
	pr := w.propose("one", variant(1), embedded.PROptions{Title: "One"})
	w.concluded(pr.HeadSHA(), "failure")
	w.push(pr, "one", sourceFile, "// speed 1.5\n", "failure")
	c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
	if !strings.Contains(c.Title+c.Summary, "rounds of machine code 1 of the change, and the server has counted it as number 2") {
		t.Errorf("the check says %s\n%s", c.Title, c.Summary)
	}
}
