package actions_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A wrong kernel is not let into main by a second pull request with the same head, into a
// branch that asks nothing: both the check and the job say the worst of both.
func TestSecondPullRequestWithTheSameHead(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	gated, other := w.sameHead()
	c := w.check(gated.HeadSHA(), "kernelgate", "failure")
	w.holds(c.Title, "#1 has the same head: DEFER (correctness)")
	w.holds(c.Summary, "This pull request by itself: ", "No policy on the base branch yet")

	// What the second says of the first does not hold the first back.
	w.no(gated.Close("walt"))
	w.no(other.Label("walt", "again"))
	w.must(w.act("pull_request"), "PASS", "no-policy", 0)
	w.check(gated.HeadSHA(), "kernelgate", "success")
}

// sameHead opens a pull request with a wrong kernel, and a second one with the same head into a branch that asks nothing.
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
