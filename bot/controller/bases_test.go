package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// stacked opens a pull request to a branch that is made for it.
func (w *world) stacked(base, branch string) *embedded.PR {
	w.Helper()
	_, err := w.repo.Push(base, map[string]string{"README.md": base}, base)
	w.no(err)
	return w.propose(branch, "// speed 1.5\n", embedded.PROptions{Base: base})
}

// A pull request whose base branch is gone says so, whoever asks for what, until the branch is
// back. What was measured before is not measured again.
func TestBaseBranchGone(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.stacked("dev", "faster")
	w.concluded(pr.HeadSHA(), "success")
	tip := w.repo.Head("dev")
	w.no(w.repo.DeleteBranch("dev"))
	if c := w.concluded(pr.HeadSHA(), "action_required"); c.Title != "The base branch dev is gone" {
		t.Errorf("the check says %q", c.Title)
	}
	w.said(pr, "The base branch dev is gone")
	w.reacted(pr, w.comment(pr, "walt", "/rebench"), "confused")
	w.said(pr, "and with it the policy")
	w.golden("base-gone", []*embedded.PR{pr})
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "dev", From: tip, Files: map[string]string{"README.md": "Back.\n"}, Message: "Back"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.expect("attempts", w.attempts(pr.HeadSHA()), "111111")
}

// The state ends with another base branch, too. A push in between changes nothing.
func TestBaseBranchGoneAndChanged(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.stacked("dev", "faster")
	w.concluded(pr.HeadSHA(), "success")
	w.no(w.repo.DeleteBranch("dev"))
	w.concluded(pr.HeadSHA(), "action_required")
	_, err := w.repo.Push("faster", map[string]string{sourceFile: "// speed 1.6\n"}, "Faster still")
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
	w.no(pr.Edit("walt", "", "", "main"))
	c := w.concluded(pr.HeadSHA(), "success")
	if !strings.Contains(c.Title, "PASS") {
		t.Errorf("the check says %q", c.Title)
	}
}

// GitHub changes the base of a pull request when the branch is deleted that its parent was
// merged from, and tells nobody. The bot finds out by the deletion.
func TestAutomaticBaseChange(t *testing.T) {
	w := newWorld(t, worldOptions{retarget: true})
	parent := w.propose("parent", "// speed 1.3\n", embedded.PROptions{Title: "Parent"})
	w.concluded(parent.HeadSHA(), "success")
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "child", From: parent.HeadSHA(), Files: map[string]string{sourceFile: "// speed 2.0\n"}, Message: "Child"})
	w.no(err)
	child, err := w.repo.OpenPR(embedded.PROptions{Title: "Child", Head: "child", Base: "parent", Author: "walt"})
	w.no(err)
	w.concluded(child.HeadSHA(), "success")
	w.no(parent.Merge("olga"))
	w.no(w.repo.DeleteBranch("parent"))
	w.settle()
	w.concluded(child.HeadSHA(), "success")
	_, err = w.repo.Push("main", map[string]string{sourceFile: "// speed 4.0\n"}, "Faster than the child")
	w.no(err)
	w.concluded(child.HeadSHA(), "failure") // it goes to main
}

// A branch that becomes a folder of branches, and the other way round, stops nobody's work.
func TestBranchBecomesFolder(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	for _, names := range [][2]string{{"feature", "feature/x"}, {"other/x", "other"}} {
		pr := w.propose(names[0], "// speed 1.5\n", embedded.PROptions{})
		w.concluded(pr.HeadSHA(), "success")
		w.no(w.repo.DeleteBranch(names[0]))
		next := w.propose(names[1], "// speed 1.6\n", embedded.PROptions{})
		w.concluded(next.HeadSHA(), "success")
	}
}
