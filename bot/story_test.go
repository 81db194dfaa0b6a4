package bot_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/fakehub"
)

func TestPassAndDefer(t *testing.T) {
	w := newWorld(t, worldOptions{})
	slow := w.propose("slower", "// speed 1.02\n", fakehub.PROptions{Title: "A little faster"})
	w.concluded(slow.HeadSHA(), "failure")
	w.said(slow, "DEFER")
	if err := slow.Merge("olga"); err == nil {
		t.Error("a deferred pull request was merged")
	}
	pr := w.propose("faster", "// speed 1.3\n", fakehub.PROptions{Title: "Much faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.said(pr, "PASS")
	w.said(pr, "A little faster") // what was tried before
	w.golden("pass-and-defer", []*fakehub.PR{slow, pr})
	w.no(pr.Merge("olga"))
}

func TestBrokenAndWrong(t *testing.T) {
	w := newWorld(t, worldOptions{})
	broken := w.propose("broken", "// BROKEN\n", fakehub.PROptions{})
	w.concluded(broken.HeadSHA(), "failure")
	wrong := w.propose("wrong", "// WRONG speed 9\n", fakehub.PROptions{})
	w.concluded(wrong.HeadSHA(), "failure")
	w.said(broken, "DEFER")
	w.said(wrong, "DEFER")
	w.golden("broken-and-wrong", []*fakehub.PR{broken, wrong})
}

func TestNothingToMeasure(t *testing.T) {
	w := newWorld(t, worldOptions{})
	_, err := w.repo.Push("docs", map[string]string{"README.md": "Better.\n"}, "docs")
	w.no(err)
	pr, err := w.repo.OpenPR(fakehub.PROptions{Title: "Docs", Head: "docs", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.golden("no-kernel", []*fakehub.PR{pr})
	if n := len(pr.Comments()); n != 0 {
		t.Errorf("%d comments on a change of documents", n)
	}
}

// A new push frees the runner at once, and the old head's check says why it has
// no verdict.
func TestSynchronizeSupersedes(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("held", "// HOLD speed 2\n", fakehub.PROptions{})
	old := pr.HeadSHA()
	w.until("a running check", func() bool {
		c, _ := w.repo.Check(old, "kernelgate / scale")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
	_, err := w.repo.Push("held", map[string]string{"kernels/scale/scale.c": "// speed 1.5\n"}, "let go")
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.concluded(old, "cancelled")
	w.said(pr, "PASS")
	w.golden("superseded", []*fakehub.PR{pr}, old)
}

func TestLabelsChangeTheRule(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("tidy", "// speed 1.001\n", fakehub.PROptions{Title: "Tidy up", Draft: true})
	w.concluded(pr.HeadSHA(), "failure")
	w.no(pr.Label("walt", "refactoring"))
	w.concluded(pr.HeadSHA(), "success")
	w.no(pr.Ready("walt"))
	w.no(pr.Unlabel("walt", "refactoring"))
	w.until("a deferral again", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Conclusion == "failure"
	})
	w.said(pr, "DEFER")
	w.golden("labels", []*fakehub.PR{pr})
}
