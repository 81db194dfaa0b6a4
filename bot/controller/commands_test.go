package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// reacted waits for the answer to a comment.
func (w *world) reacted(pr *embedded.PR, c embedded.Comment, reaction string) {
	w.Helper()
	w.until(reaction+" on "+c.Body, func() bool {
		for _, now := range pr.Comments() {
			if now.ID == c.ID {
				return len(now.Reactions[reaction]) > 0
			}
		}
		return false
	})
}

func TestRebenchAddsRounds(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	// Between the guard and the goal: more rounds cannot make it pass.
	pr := w.propose("close", "// speed 1.098\n", embedded.PROptions{Title: "Almost"})
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/rebench rounds=3"), "rocket")
	w.said(pr, "Earlier attempts")
	w.concluded(pr.HeadSHA(), "failure")
	w.golden("rebench", []*embedded.PR{pr})
	body := pr.Comments()[0].Body
	if !strings.Contains(body, "Measured in 11 rounds") && !strings.Contains(body, "Measured in 7 rounds") {
		t.Error("the new rounds were not added to those before")
	}
}

func TestCommandsAndPermissions(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	w.concluded(pr.HeadSHA(), "failure")
	for _, c := range []struct{ who, text, reaction string }{
		{"rita", "/rebench", "confused"},                // a reader
		{"eve", "/override I say so", "confused"},       // nobody
		{"walt", "/override I may not", "confused"},     // a writer is no maintainer
		{"walt", "/rebench speed=high", "confused"},     // no such argument
		{"walt", "/rebench other_kernel", "confused"},   // no such kernel
		{"walt", "/rebench shapes=huge", "confused"},    // no such shape
		{"walt", "/rebench vs=no-such-ref", "confused"}, // no such commit
		{"walt", "/rebench profile", "confused"},        // the policy has no such gate
		{"walt", "/cancel", "confused"},                 // nothing is running
		{"rita", "/explain", "rocket"},
		{"rita", "Please see below.\n\n/help", "rocket"},
	} {
		w.reacted(pr, w.comment(pr, c.who, c.text), c.reaction)
		w.settle() // the reply stands before the next comment
	}
	quoted := []embedded.Comment{
		w.comment(pr, "walt", "> /rebench\n\nI would not."),
		w.comment(pr, "walt", "```\n/rebench\n```\nis how one asks."),
		w.comment(pr, "walt", "One could `/rebench` it."),
	}
	w.settle()
	for _, c := range pr.Comments() {
		for _, q := range quoted {
			if c.ID == q.ID && len(c.Reactions) > 0 {
				t.Errorf("%q was taken for a command", q.Body)
			}
		}
	}
	if err := pr.Merge("olga"); err == nil {
		t.Error("a deferred pull request was merged")
	}
	w.golden("commands", []*embedded.PR{pr})
}

func TestOverrideEndsWithTheNextPush(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "mara", "/override it fixes a bug, cc @everyone --> <b>"), "rocket")
	w.concluded(pr.HeadSHA(), "success")
	w.golden("override", []*embedded.PR{pr})
	_, err := w.repo.Push("slow", map[string]string{"kernels/scale/scale.c": "// speed 1.0002\n"}, "more")
	w.no(err)
	w.concluded(pr.HeadSHA(), "failure")
	if err := pr.Merge("olga"); err == nil {
		t.Error("the override outlived a push")
	}
}

func TestCancelAndAgain(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	w.until("a running check", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
	w.reacted(pr, w.comment(pr, "walt", "/cancel"), "rocket")
	w.concluded(pr.HeadSHA(), "cancelled")
	if err := pr.Merge("olga"); err == nil {
		t.Error("a cancelled run let the merge through")
	}
	w.golden("cancelled", []*embedded.PR{pr})
	close(w.hold)
	w.rebench(pr, "/rebench", "success")
	w.expect("after one that was cancelled", w.attempts(pr.HeadSHA()), "222222")
	w.no(pr.Merge("olga"))
}

// The runner's fault blocks the merge and never blames the code. Its evidence is
// worth nothing, so a rebench measures anew; the attempts that failed are counted,
// on whatever commit.
func TestRunnerFault(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("unlucky", "// FAULT speed 1.5\n", embedded.PROptions{Title: "Unlucky"})
	if c := w.concluded(pr.HeadSHA(), "failure"); !strings.HasPrefix(c.Title, "Runner") {
		t.Errorf("the check of a runner's fault is titled %q", c.Title)
	}
	w.golden("runner-fault", []*embedded.PR{pr})
	w.push(pr, "unlucky", "README.md", "Better.\n", "failure")
	close(w.hold)
	w.rebench(pr, "/rebench", "success")
	w.expect("after two that failed", w.attempts(pr.HeadSHA()), "333333")
	w.said(pr, "attempt 3 on `runner`")
	w.no(pr.Merge("olga"))
}

// A comparison that the policy does not ask for is shown and decides nothing.
func TestMeasureExtra(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/rebench vs=self"), "rocket")
	w.reacted(pr, w.comment(pr, "walt", "/rebench shapes=small seeds=4"), "rocket")
	w.golden("extra", []*embedded.PR{pr})
	if c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); c.Conclusion != "failure" {
		t.Errorf("the required check became %s by an extra", c.Conclusion)
	}
}

// Two kernels of one name are told apart by their folders, in checks, buttons and
// commands.
func TestTwoKernelsOfOneName(t *testing.T) {
	w := newWorld(t, worldOptions{})
	_, err := w.repo.Push("main", map[string]string{"kernels/other/kernel.yaml": manifestYAML, "kernels/other/scale.c": "// speed 1.0\n", "kernels/other/reference.c": "// the truth\n"}, "Another")
	w.no(err)
	alone := w.propose("alone", "// speed 1.098\n", embedded.PROptions{Title: "One of them"})
	w.concluded(alone.HeadSHA(), "failure")
	w.reacted(alone, w.comment(alone, "walt", "/rebench scale"), "rocket")
	w.concluded(alone.HeadSHA(), "failure")

	_, err = w.repo.Push("both", map[string]string{"kernels/other/scale.c": "// speed 1.097\n", "kernels/scale/scale.c": "// speed 1.096\n"}, "both")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Both", Head: "both", Author: "walt"})
	w.no(err)
	head := pr.HeadSHA()
	w.concluded(head, "failure")
	const first, second = "kernelgate / scale", "kernelgate / scale (kernels/scale)"
	attempts := func(name string) (n int) {
		for _, c := range w.repo.Checks(head) {
			if c.Name == name {
				n++
			}
		}
		return n
	}
	expect := func(what string, a, b int) {
		t.Helper()
		w.until(what, func() bool { return attempts(first) == a && attempts(second) == b })
		w.concluded(head, "failure")
		if attempts(first) != a || attempts(second) != b {
			t.Errorf("%s: %d and %d attempts, want %d and %d", what, attempts(first), attempts(second), a, b)
		}
	}
	expect("a check each", 1, 1)
	c, _ := w.repo.Check(head, second)
	w.no(c.RequestAction("walt", "rebench"))
	expect("a second attempt by the button", 1, 2)
	w.reacted(pr, w.comment(pr, "walt", "/rebench kernels/other"), "rocket")
	expect("a second attempt by the folder", 2, 2)
	w.reacted(pr, w.comment(pr, "walt", "/rebench scale"), "confused")
	w.said(pr, "2 kernels are called `scale`: name the folder that you mean, `kernels/other` or `kernels/scale`.")
	expect("nothing by a name that both have", 2, 2)
}

// A conversation in which the bot may say nothing is no reason to measure nothing.
func TestMayNotSpeak(t *testing.T) {
	w := newWorld(t, worldOptions{mute: true})
	pr := w.propose("close", "// speed 1.098\n", embedded.PROptions{Title: "Almost"})
	w.concluded(pr.HeadSHA(), "failure")
	w.comment(pr, "walt", "/rebench")
	w.until("a second attempt", func() bool { return len(w.repo.Checks(pr.HeadSHA())) == 4 })
	w.concluded(pr.HeadSHA(), "failure")
	w.comment(pr, "mara", "/override it fixes a bug")
	w.concluded(pr.HeadSHA(), "success")
	if n := len(pr.Comments()); n != 2 {
		t.Errorf("%d comments, want those of people alone", n)
	}
}

func TestButtons(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("close", "// speed 1.098\n", embedded.PROptions{Title: "Almost"})
	c := w.concluded(pr.HeadSHA(), "failure")
	w.no(c.RequestAction("walt", "rebench"))
	w.until("a second attempt", func() bool { return len(w.repo.Checks(pr.HeadSHA())) == 4 })
	c = w.concluded(pr.HeadSHA(), "failure")
	w.no(c.Rerequest("walt"))
	w.until("a third attempt", func() bool { return len(w.repo.Checks(pr.HeadSHA())) == 6 })
	c = w.concluded(pr.HeadSHA(), "failure")
	w.no(c.RerequestSuite("walt"))
	w.until("a fourth attempt", func() bool { return len(w.repo.Checks(pr.HeadSHA())) == 8 })
	w.concluded(pr.HeadSHA(), "failure")
	w.settle()
	if n := len(w.repo.Checks(pr.HeadSHA())); n != 8 {
		t.Errorf("%d checks after four attempts, want one required and one of the kernel each", n)
	}
	if n := len(pr.Comments()); n != 1 {
		t.Errorf("%d comments, want the sticky one alone", n)
	}
}
