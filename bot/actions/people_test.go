package actions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners"
)

func TestComments(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	measured := 0
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		measured++
		return measureScripted(ctx, job, dir, p)
	}
	for _, test := range []struct {
		name, who, text string
		verdict         string // verdict of the measurement; empty if nothing is measured
		reacts          []string
		replies         string // part of the reply; empty if there is none
	}{
		{"rebench", "walt", "/rebench", "PASS", []string{"eyes", "rocket"}, "Measuring `scale` from the start"},
		{"rebench a kernel", "walt", "Once more:\n\n/rebench scale rounds=4", "PASS", []string{"eyes", "rocket"}, "Measuring `scale` from the start"},
		{"no permission", "rita", "/rebench", "", []string{"eyes", "confused"}, "needs the role `write` in this repository, and you have `read`"},
		{"unknown kernel", "walt", "/rebench gemm", "", []string{"eyes", "confused"}, "touches no kernel `gemm`"},
		{"unknown argument", "walt", "/rebench speed=11", "", []string{"eyes", "confused"}, "speed"},
		{"beyond the policy", "walt", "/rebench vs=self", "", []string{"eyes", "confused"}, "write only kernels and `rounds`"},
		{"not a fork", "walt", "/ok-to-test 0123456", "", []string{"eyes", "confused"}, "not from a fork"},
		{"help", "rita", "/help", "", []string{"eyes", "rocket"}, "Other commands need the bot"},
		{"explain", "rita", "/explain", "", []string{"eyes", "rocket"}, "Rule `default`"},
		{"chat", "walt", "Shall we /rebench this?", "", nil, ""},
		{"quoted", "walt", "> /rebench", "", nil, ""},
		{"another's command", "walt", "/retest", "", nil, ""},
		{"needs the bot", "olga", "/override it is late", "", nil, ""},
	} {
		measured = 0
		said, err := pr.Comment(test.who, test.text)
		w.no(err)
		before := len(pr.Comments())
		w.must(w.act("issue_comment"), test.verdict, "", 0)
		if (measured > 0) != (test.verdict != "") {
			t.Errorf("%s: measured %d times, the verdict is to be %q", test.name, measured, test.verdict)
		}
		var replies []string
		for i, c := range pr.Comments() {
			if c.ID == said.ID && len(c.Reactions) != len(test.reacts) {
				t.Errorf("%s: reactions %v, want %v", test.name, c.Reactions, test.reacts)
			}
			for _, kind := range test.reacts {
				if c.ID == said.ID && len(c.Reactions[kind]) != 1 {
					t.Errorf("%s: reactions %v, want %v", test.name, c.Reactions, test.reacts)
				}
			}
			if i >= before && strings.HasPrefix(c.Body, "<!-- kernelgate:reply:") {
				replies = append(replies, c.Body)
			}
		}
		if test.replies == "" && len(replies) > 0 || test.replies != "" && len(replies) != 1 {
			t.Fatalf("%s: %d replies: %v", test.name, len(replies), replies)
		}
		if test.replies != "" {
			w.holds(replies[0], test.replies)
			w.goldenText("reply-"+strings.ReplaceAll(test.name, " ", "-"), replies[0])
		}
	}
}

// TestReviews checks that a workflow executes commands on lines and in reviews, too.
func TestReviews(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	replies := func() (n int) {
		for _, c := range pr.Comments() {
			if strings.HasPrefix(c.Body, "<!-- kernelgate:reply:") {
				n++
			}
		}
		return n
	}
	_, err := pr.CommentOn("walt", "kernels/scale/scale.c", 1, "Is that so?\n\n/rebench")
	w.no(err)
	w.must(w.act("pull_request_review_comment"), "PASS", "", 0)
	if c := pr.LineComments()[0]; len(c.Reactions["eyes"]) != 1 || len(c.Reactions["rocket"]) != 1 || replies() != 1 {
		t.Errorf("reactions %v and %d replies", c.Reactions, replies())
	}
	w.no(pr.Review("rita", "COMMENT", "/rebench"))
	w.must(w.act("pull_request_review"), "", "", 0)
	w.no(pr.Review("olga", "APPROVE", "/rebench"))
	w.must(w.act("pull_request_review"), "PASS", "", 0)
	w.must(w.act("pull_request_review"), "PASS", "", 0) // GitHub lets anybody rerun a job
	w.no(pr.Review("olga", "APPROVE", "Fine. > /rebench"))
	w.must(w.act("pull_request_review"), "", "", 0)
	if n := replies(); n != 3 {
		t.Errorf("%d replies, want one to each of three commands", n)
	}
	w.check(pr.HeadSHA(), "kernelgate", "success")
}

// TestForkApprovedInReview checks that a fork's commit can be approved in a review.
func TestForkApprovedInReview(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	w.no(pr.Review("rita", "APPROVE", "/ok-to-test "+pr.HeadSHA()))
	w.must(w.act("pull_request_review"), "", "", 0)
	w.no(pr.Review("walt", "APPROVE", "/ok-to-test "+pr.HeadSHA()))
	w.must(w.act("pull_request_review"), "PASS", "", 0)
}

// TestFork checks that code from a fork reaches no runner before a person with the required role
// has named that exact commit.
func TestFork(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	measured := 0
	w.measure = func(ctx context.Context, job runners.Job, dir string, p runners.Progress) (runners.Measured, error) {
		measured++
		return measureScripted(ctx, job, dir, p)
	}
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	head := pr.HeadSHA()
	held := w.act("pull_request")
	w.must(held, "DEFER", "approval", 1)
	w.check(head, "kernelgate", "action_required")
	w.golden("fork-held", held, pr)
	for _, test := range []struct{ name, who, text string }{
		{"the author", "eve", "/ok-to-test " + head},
		{"a reader", "rita", "/ok-to-test " + head},
		{"a short name", "walt", "/ok-to-test " + head[:12]},
		{"another commit", "walt", "/ok-to-test " + w.repo.Head("main")},
	} {
		_, err := pr.Comment(test.who, test.text)
		w.no(err)
		w.must(w.act("issue_comment"), "", "", 0)
		if measured != 0 {
			t.Fatalf("%s: the fork's code was run", test.name)
		}
	}
	c, err := pr.Comment("rita", "Looks good")
	w.no(err)
	w.no(c.Edit("olga", "/ok-to-test "+head)) // olga edits somebody else's comment
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	_, err = pr.Comment("walt", "/rebench")
	w.no(err)
	w.must(w.act("issue_comment"), "", "", 0)

	_, err = pr.Comment("walt", "/ok-to-test "+head)
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
	w.check(head, "kernelgate", "success")
	if strings.Contains(pr.Comments()[0].Body, "measured anew") || measured != 1 {
		t.Errorf("%d attempts; waiting for approval is none", measured)
	}
	w.must(w.act("pull_request"), "PASS", "", 0) // found in the conversation

	_, err = fork.Push("theirs", source("speed 9"), "more")
	w.no(err)
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	if measured != 2 {
		t.Errorf("measured %d times, want 2", measured)
	}
}

func TestForksNever(t *testing.T) {
	w := newWorld(t, map[string]string{".github/kernelgate.yaml": policyYAML + "forks: {run: never}\n"}, mayWrite)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	_, err = pr.Comment("walt", "/ok-to-test "+pr.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "", "", 0)
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	w.check(pr.HeadSHA(), "kernelgate", "action_required")
}

// TestReadOnlyToken checks that with a read-only token the job's own status is the verdict, and the
// summary says what to do.
func TestReadOnlyToken(t *testing.T) {
	w := newWorld(t, nil, mayRead)
	pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "DEFER", "too-slow", 1)
	if len(pr.Comments()) != 0 || len(w.repo.Checks(pr.HeadSHA())) != 0 {
		t.Error("something was written")
	}
	w.holds(j.summary, "checks: write", "pull-requests: write", "Checks: read and write")
	w.golden("read-only", j, pr)
	again := w.actIn(t.Context(), "pull_request", func(c *actions.Config) {
		first := c.Getenv
		c.Getenv = func(name string) string {
			if name == "GITHUB_RUN_ATTEMPT" {
				return "2"
			}
			return first(name)
		}
	})
	w.holds(again.summary, "attempt 2 at this machine code")
}

func TestReadOnlyFork(t *testing.T) {
	w := newWorld(t, nil, mayRead)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	j := w.act("pull_request")
	w.must(j, "DEFER", "approval", 1)
	w.golden("read-only-fork", j, pr)
}
