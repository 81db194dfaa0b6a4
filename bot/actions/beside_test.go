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
	w.holds(c.Summary, "This pull request: ", "No policy on the base branch yet")

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
