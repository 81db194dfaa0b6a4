package actions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners"
)

// TestReviewsOnForksCannotWrite covers jobs for reviews and line comments on a fork's pull request,
// which get a read-only token from GitHub. They measure nothing and say what to do. A comment in
// the conversation then starts a job that can write.
func TestReviewsOnForksCannotWrite(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "/.github/ @carl\n"}, mayWrite)
	w.report = "status"
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	fork, err := w.repo.Fork("eve")
	w.no(err)
	files := source("speed 1.3")
	files[".github/kernelgate.yaml"] = nothingAsked
	pr := w.propose("theirs", files, embedded.PROptions{HeadRepo: fork, Author: "eve"})
	head := pr.HeadSHA()
	measured := 0
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		measured++
		return measureScripted(ctx, job, dir, p)
	}
	writes := w.token
	reads := w.tokenOf("reader", mayRead)
	mute := func(event, says string) job {
		t.Helper()
		w.token = reads
		j := w.act(event)
		w.token = writes
		w.must(j, "", "", 0)
		w.holds(j.summary, "a token that can only read", says)
		w.holds(j.log, "::warning title=kernelgate::GitHub gives a job that a review of a fork's pull request starts")
		return j
	}
	_, err = pr.Comment("walt", "/ok-to-test "+head)
	w.no(err)
	w.must(w.act("issue_comment"), "DEFER", "rules", 1)
	w.holds(pr.Comments()[1].Body+pr.Comments()[2].Body, "after the review, comment `/rebench` here")
	measured = 0

	w.no(pr.Review("carl", "APPROVE", "Fine by me."))
	mute("pull_request_review", "Comment `/rebench` in the conversation. That starts a job that can write.")
	w.no(pr.Review("walt", "COMMENT", "/rebench"))
	mute("pull_request_review", "Write the command as a comment in the conversation.")
	_, err = pr.CommentOn("walt", "kernels/scale/scale.c", 1, "/rebench")
	w.no(err)
	mute("pull_request_review_comment", "Write the command as a comment in the conversation.")
	if measured != 0 {
		t.Errorf("measured %d times, and nobody saw it", measured)
	}
	w.status(head, "kernelgate", "pending")
	_, err = pr.Comment("carl", "/rebench")
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
	w.status(head, "kernelgate", "success")
}

// TestRebenchWritesAVerdictWithoutKernels checks that a comment makes a job write the verdict
// even if there is nothing to measure, because the fork's own job could not write it.
func TestRebenchWritesAVerdictWithoutKernels(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("words", map[string]string{"README.md": "Better.\n"}, embedded.PROptions{HeadRepo: fork, Author: "eve"})
	writes := w.token
	w.token = w.tokenOf("reader", mayRead)
	w.must(w.act("pull_request"), "PASS", "no-kernel", 0)
	if n := len(w.repo.Statuses(pr.HeadSHA())); n != 0 {
		t.Fatalf("%d statuses were written with a token that can only read", n)
	}
	w.token = writes
	_, err = pr.Comment("walt", "/rebench")
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "no-kernel", 0)
	w.status(pr.HeadSHA(), "kernelgate", "success")
	all := pr.Comments()
	if last := all[len(all)-1].Body; !strings.Contains(last, "publishes the verdict again") {
		t.Errorf("the last comment says %s", last)
	}
}
