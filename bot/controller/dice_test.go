package controller_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// evidence is what the newest verdict on a commit rests on.
func (w *world) evidence(sha string) *gates.Evidence {
	w.Helper()
	rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{Folder: "kernels/scale", Limit: 100})
	w.no(err)
	for _, row := range rows {
		if row.Head != sha || row.Extra || row.Evidence == "" {
			continue
		}
		r, _, err := w.running.journal.Artifacts.Get(w.ctx, row.Evidence)
		w.no(err)
		data, err := io.ReadAll(r)
		w.no(err)
		e, err := gates.ParseEvidence("evidence", data)
		w.no(err)
		return e
	}
	w.Fatalf("nothing was found out about %s", sha)
	return nil
}

// attempts is the rounds behind the newest verdict on a commit, a digit each: which
// attempt at the machine code they were measured in.
func (w *world) attempts(sha string) string {
	w.Helper()
	var b strings.Builder
	if p := w.evidence(sha).Performance; p != nil {
		for _, round := range p.Rounds {
			fmt.Fprint(&b, round.Attempt)
		}
	}
	return b.String()
}

// push adds a commit to a branch, and waits for the verdict.
func (w *world) push(pr *embedded.PR, branch, file, text, conclusion string) string {
	w.Helper()
	_, err := w.repo.Push(branch, map[string]string{file: text}, "Another commit")
	w.no(err)
	w.concluded(pr.HeadSHA(), conclusion)
	return pr.HeadSHA()
}

func (w *world) expect(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: measured in the attempts %s, want %s", what, got, want)
	}
}

// rebench asks for another attempt, and waits for its verdict.
func (w *world) rebench(pr *embedded.PR, text, conclusion string) {
	w.Helper()
	w.reacted(pr, w.comment(pr, "walt", text), "rocket")
	w.settle()
	w.concluded(pr.HeadSHA(), conclusion)
}

// measuring waits until rounds of a commit are being measured.
func (w *world) measuring(sha string) {
	w.Helper()
	w.until("rounds of "+sha, func() bool {
		c, _ := w.repo.Check(sha, "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
}

const (
	sourceFile = "kernels/scale/scale.c"
	onTheEdge  = "// speed 1.1\n"  // undecided to the end
	tooSlow    = "// speed 1.09\n" // decided at the first look
)

// A push that changes no machine code is no new chance: what was measured stands,
// and a rebench adds to it. Other machine code is measured afresh.
func TestPushOfTheSameMachineCode(t *testing.T) {
	const rounds = "11111111"
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("close", onTheEdge, embedded.PROptions{Title: "Almost"})
	first := pr.HeadSHA()
	w.concluded(first, "failure")
	w.expect("the first commit", w.attempts(first), rounds)
	w.expect("documents", w.attempts(w.push(pr, "close", "README.md", "Better.\n", "failure")), rounds)
	w.said(pr, fmt.Sprintf("what was measured at %.12s: its evidence counts", first))
	w.expect("a remark", w.attempts(w.push(pr, "close", sourceFile, "/* So it is. */\n"+onTheEdge, "failure")), rounds)
	w.said(pr, fmt.Sprintf("what was measured at %.12s: its evidence counts", first))
	w.golden("same-code", []*embedded.PR{pr})
	w.rebench(pr, "/rebench rounds=3", "failure")
	w.expect("a rebench", w.attempts(pr.HeadSHA()), rounds+"222")
	w.said(pr, "attempt 2 on `runner`")
	w.expect("documents again", w.attempts(w.push(pr, "close", "README.md", "Best.\n", "failure")), rounds+"222")
	w.said(pr, "attempt 2 on `runner`")
	w.expect("other code", w.attempts(w.push(pr, "close", sourceFile, "// speed 1.3\n", "success")), "11111111")
	w.said(pr, "attempt 1 on `runner`")
}

// What was cancelled or superseded after its first round is an attempt, in whatever
// pull request, and after the bot was started again.
func TestAttemptsThatEndEarly(t *testing.T) {
	const held = "// HOLD speed 1.5\n"
	restart := func(w *world) {
		w.Helper()
		w.no(w.running.stop())
		w.start()
	}
	cancel := func(w *world, pr *embedded.PR) {
		w.Helper()
		w.measuring(pr.HeadSHA())
		w.reacted(pr, w.comment(pr, "walt", "/cancel"), "rocket")
		w.concluded(pr.HeadSHA(), "cancelled")
	}
	for name, c := range map[string]struct {
		story func(w *world, pr *embedded.PR) *embedded.PR // returns the pull request whose verdict is looked at
		want  string
	}{
		"cancelled twice, with a restart": {func(w *world, pr *embedded.PR) *embedded.PR {
			cancel(w, pr)
			restart(w)
			w.reacted(pr, w.comment(pr, "walt", "/rebench"), "rocket")
			cancel(w, pr)
			restart(w)
			close(w.hold)
			w.rebench(pr, "/rebench", "success")
			return pr
		}, "333333"},
		"superseded": {func(w *world, pr *embedded.PR) *embedded.PR {
			w.measuring(pr.HeadSHA())
			_, err := w.repo.Push("early", map[string]string{"README.md": "Better.\n"}, "Documents")
			w.no(err)
			w.measuring(pr.HeadSHA())
			close(w.hold)
			w.concluded(pr.HeadSHA(), "success")
			return pr
		}, "222222"},
		"closed, and opened elsewhere": {func(w *world, pr *embedded.PR) *embedded.PR {
			w.measuring(pr.HeadSHA())
			w.no(pr.Close("walt"))
			w.concluded(pr.HeadSHA(), "cancelled")
			close(w.hold)
			other := w.propose("elsewhere", held, embedded.PROptions{Title: "Again"})
			w.concluded(other.HeadSHA(), "success")
			return other
		}, "222222"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{retold: true})
			pr := c.story(w, w.propose("early", held, embedded.PROptions{Title: "Early"}))
			w.expect(name, w.attempts(pr.HeadSHA()), c.want)
			w.said(pr, fmt.Sprintf("attempt %.1s on `runner`", c.want))
			w.said(pr, fmt.Sprintf("attempt %.1s at this machine code", c.want))
		})
	}
}

// The way from one version to another and back finds what was measured of both, and
// so does another pull request.
func TestBackAndForth(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("waver", onTheEdge, embedded.PROptions{Title: "Waver"})
	first := pr.HeadSHA()
	w.concluded(first, "failure")
	second := w.push(pr, "waver", sourceFile, tooSlow, "failure")
	w.expect("the other version", w.attempts(second), "111111")
	w.rebench(pr, "/rebench rounds=2", "failure")
	w.expect("the first version", w.attempts(w.push(pr, "waver", sourceFile, onTheEdge, "failure")), "11111111")
	w.said(pr, fmt.Sprintf("what was measured at %.12s: its evidence counts", first))
	other := w.propose("twin", "/* Mine. */\n"+tooSlow, embedded.PROptions{Title: "Twin"})
	w.concluded(other.HeadSHA(), "failure")
	w.expect("another pull request", w.attempts(other.HeadSHA()), "11111122")
	w.said(other, fmt.Sprintf("what was measured at %.12s: its evidence counts", second))
	w.rebench(other, "/rebench rounds=1", "failure")
	w.expect("a rebench there", w.attempts(other.HeadSHA()), "111111223")
}

// Machine code that is other with every build is no new chance while the sources
// are the same.
func TestCodeThatKeepsTheTime(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("clock", "// __TIME__ speed 1.1\n", embedded.PROptions{Title: "Clock"})
	w.concluded(pr.HeadSHA(), "failure")
	w.rebench(pr, "/rebench", "failure")
	w.expect("a rebench", w.attempts(pr.HeadSHA()), "22222222")
	w.expect("documents", w.attempts(w.push(pr, "clock", "README.md", "Better.\n", "failure")), "333333333")
}

// An extra is no attempt, and a policy that changes takes the
// attempts along with the evidence that it judges.
func TestAttemptsAcrossPolicies(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("close", onTheEdge, embedded.PROptions{Title: "Almost"})
	w.concluded(pr.HeadSHA(), "failure")
	w.rebench(pr, "/rebench vs=self", "failure")
	w.rebench(pr, "/rebench shapes=mission", "failure")
	ask := func(text string) {
		t.Helper()
		planned := w.running.bot.Counts().Planned
		_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": text}, "Policy")
		w.no(err)
		w.poll("the new rules", func() bool { return w.running.bot.Counts().Planned >= planned+2 })
		w.concluded(pr.HeadSHA(), "failure")
	}
	ask(policyYAML + "# strict\n")
	w.rebench(pr, "/rebench rounds=1", "failure")
	w.expect("a rebench by another policy", w.attempts(pr.HeadSHA()), "111111112")
	ask(policyYAML)
	w.expect("the first policy again", w.attempts(pr.HeadSHA()), "11111111")
	w.rebench(pr, "/rebench rounds=2", "failure")
	w.expect("a rebench by the first policy", w.attempts(pr.HeadSHA()), "1111111122")
}

// Rounds that nobody counted are worth nothing.
func TestUncountedRounds(t *testing.T) {
	w := newWorld(t, worldOptions{forgets: true})
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{})
	c := w.concluded(pr.HeadSHA(), "failure")
	if !strings.Contains(c.Title+c.Summary, "rounds of attempt 1, which the server has not counted") {
		t.Errorf("the check says %s\n%s", c.Title, c.Summary)
	}
}

// What was wrong once stays wrong, although other secret cases are drawn.
func TestWrongStaysWrong(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("wrong", "// WRONG-UNTIL speed 1.5\n", embedded.PROptions{Title: "Wrong"})
	w.concluded(pr.HeadSHA(), "failure")
	close(w.hold)
	w.rebench(pr, "/rebench", "failure")
	w.said(pr, "wrong in 4 of 8 cases")
	w.rebench(pr, "/rebench", "failure")
	w.said(pr, "wrong in 4 of 12 cases")
	w.push(pr, "wrong", "README.md", "Better.\n", "failure")
	w.expect("a push", w.attempts(w.push(pr, "wrong", sourceFile, "// speed 1.5\n", "success")), "111111")
}
