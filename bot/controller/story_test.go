package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

func TestPassAndDefer(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	slow := w.propose("slower", "// speed 1.02\n", embedded.PROptions{Title: "A little faster"})
	w.concluded(slow.HeadSHA(), "failure")
	w.said(slow, "DEFER")
	if err := slow.Merge("olga"); err == nil {
		t.Error("a deferred pull request was merged")
	}
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Much faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.said(pr, "PASS")
	w.said(pr, "A little faster") // what was tried before
	w.golden("pass-and-defer", []*embedded.PR{slow, pr})
	w.no(pr.Merge("olga"))
}

func TestBrokenAndWrong(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	broken := w.propose("broken", "// BROKEN\n", embedded.PROptions{})
	w.concluded(broken.HeadSHA(), "failure")
	wrong := w.propose("wrong", "// WRONG speed 9\n", embedded.PROptions{})
	w.concluded(wrong.HeadSHA(), "failure")
	w.said(broken, "DEFER")
	w.said(wrong, "DEFER")
	w.golden("broken-and-wrong", []*embedded.PR{broken, wrong})
}

func TestNothingToMeasure(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("docs", map[string]string{"README.md": "Better.\n"}, "docs")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Docs", Head: "docs", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.golden("no-kernel", []*embedded.PR{pr})
	if n := len(pr.Comments()); n != 0 {
		t.Errorf("%d comments on a change of documents", n)
	}
}

// A new push frees the runner at once, and the old head's check says why it has
// no verdict.
func TestSynchronizeSupersedes(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("held", "// HOLD speed 2\n", embedded.PROptions{})
	old := pr.HeadSHA()
	w.until("a running check", func() bool {
		c, _ := w.repo.Check(old, "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
	_, err := w.repo.Push("held", map[string]string{"kernels/scale/scale.c": "// speed 1.5\n"}, "let go")
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.concluded(old, "cancelled")
	w.said(pr, "PASS")
	w.golden("superseded", []*embedded.PR{pr}, old)
}

func TestLabelsChangeTheRule(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("tidy", "// speed 1.001\n", embedded.PROptions{Title: "Tidy up", Draft: true})
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
	w.golden("labels", []*embedded.PR{pr})
}

// A verdict that stands is one by the rules that stand: where the base's policy
// changes, what was measured is judged again, and measured again only if the rules
// ask for more.
func TestPolicyOfTheBaseChanges(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	ask := func(file, text, message string) {
		t.Helper()
		_, err := w.repo.Push("main", map[string]string{file: text}, message)
		w.no(err)
	}
	measured := func() (n int) {
		t.Helper()
		rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Folder: "kernels/scale", Limit: 20})
		w.no(err)
		for _, r := range rows {
			if r.Runner != "" {
				n++
			}
		}
		return n
	}
	ask(".github/kernelgate.yaml", strings.Replace(policyYAML, "+10%", "+50%", 1), "Ask for more")
	w.concluded(pr.HeadSHA(), "failure")
	w.golden("policy-changes", []*embedded.PR{pr})
	if err := pr.Merge("olga"); err == nil {
		t.Error("a pull request was merged by rules that were gone")
	}
	ask(".github/kernelgate.yaml", policyYAML, "Ask for less")
	w.concluded(pr.HeadSHA(), "success")
	if n := measured(); n != 1 {
		t.Errorf("%d measurements: what was measured was measured again", n)
	}
	planned := w.running.bot.Counts().Planned
	ask("README.md", "Kernels, and what they are for.\n", "Docs")
	w.settle()
	ask("kernels/scale/notes.md", "It scales.\n", "Notes")
	w.settle()
	if n := w.running.bot.Counts().Planned; n != planned+3 { // of the pushes themselves, and of a folder that the kernel is built from
		t.Errorf("%d plans for two changes of documents", n-planned)
	}
	ask("kernels/scale/kernel.yaml", strings.Replace(manifestYAML, "secret: {N: 1..500}", "secret: {N: 1..600}", 1), "Other secrets")
	w.until("a second measurement", func() bool { return measured() > 1 })
	w.concluded(pr.HeadSHA(), "success")
}
