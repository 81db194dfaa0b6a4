package actions_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestSecondPullRequestWithTheSameHead checks that a second pull request with the same head, into a
// branch without a policy, does not let a wrong kernel into main. Both the check and the job show
// the worse of the two verdicts.
func TestSecondPullRequestWithTheSameHead(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	gated, other := w.sameHead()
	c := w.check(gated.HeadSHA(), "kernelgate", "failure")
	w.holds(c.Title, "#1 has the same head: DEFER (correctness)")
	w.holds(c.Summary, "This change: ", "No policy on the base branch yet")

	// The second pull request's statement about the first does not block the first.
	w.no(gated.Close("walt"))
	w.no(other.Label("walt", "again"))
	w.must(w.act("pull_request"), "PASS", "no-policy", 0)
	w.check(gated.HeadSHA(), "kernelgate", "success")
}

// sameHead opens a pull request with a wrong kernel, and a second one with the same head into a
// branch without a policy.
func (w *world) sameHead() (gated, other *embedded.PR) {
	w.Helper()
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "playground", Delete: []string{".github/kernelgate.yaml"}, Files: map[string]string{"README.md": "Play.\n"}, Message: "Ask nothing"})
	w.no(err)
	gated = w.propose("wrong", source("WRONG speed 9"), embedded.PROptions{})
	w.must(w.act("pull_request"), "DEFER", "correctness", 1)
	other, err = w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Into the playground", Head: "wrong", Base: "playground"})
	w.no(err)
	w.must(w.act("pull_request"), "DEFER", "same-head", 1)
	return gated, other
}

// TestGroupsHeadInAPullRequest checks that a pull request with the commit of a merge group, into a branch without a policy, does
// not let the group pass: neither before nor after the job of the group.
func TestGroupsHeadInAPullRequest(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "playground", Delete: []string{".github/kernelgate.yaml"}, Files: map[string]string{"README.md": "Play.\n"}, Message: "Ask nothing"})
	w.no(err)
	_, err = w.repo.Push("wrong", source("WRONG speed 9"), "wrong")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Wrong", Head: "wrong", Base: "playground"})
	w.no(err)
	w.must(w.act("pull_request"), "PASS", "no-policy", 0)
	w.no(pr.Edit("walt", "Wrong", "", "main"))
	w.no(w.repo.Enqueue("walt", pr))
	group := w.repo.QueueHeads()[0]
	w.no(w.repo.CreateBranch("walt", "look", group))
	_, err = w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Look", Head: "look", Base: "playground"})
	w.no(err)
	if j := w.act("pull_request"); j.Exit == 0 && j.err == nil {
		t.Errorf("the job of the second pull request ended with %+v", j.End)
	}
	if c, ok := w.repo.Check(group, "kernelgate"); ok {
		t.Errorf("it wrote %s %s: %s", c.Status, c.Conclusion, c.Title)
	}
	w.must(w.act("merge_group"), "DEFER", "correctness", 1)
	if pr.State().Merged {
		t.Error("merged")
	}
}
