package actions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/actions"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// rehearse is act without writes to GitHub.
func (w *world) rehearse(event string) job {
	w.Helper()
	return w.actIn(w.Context(), event, func(c *actions.Config) { c.DryRun = true })
}

// TestDryRun checks that a dry run reports what a job would write, with statuses and with checks,
// and writes nothing. A read-only token is enough.
func TestDryRun(t *testing.T) {
	for _, report := range []string{"status", "checks"} {
		t.Run(report, func(t *testing.T) {
			w := newWorld(t, nil, mayRead)
			w.report = report
			pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
			j := w.rehearse("pull_request")
			w.must(j, "DEFER", "too-slow", 1)
			if n := len(w.repo.Statuses(pr.HeadSHA())) + len(w.repo.Checks(pr.HeadSHA())) + len(w.repo.Checks(w.repo.Head("main"))) + len(pr.Comments()); n != 0 {
				t.Errorf("%d things were written", n)
			}
			if found := commands(j.log); len(found) > 0 {
				t.Errorf("the log has the commands %q, which GitHub would follow", found)
			}
			head := fmt.Sprintf("%.12s", pr.HeadSHA())
			want := map[string][]string{
				"status": {`status "kernelgate" on ` + head + ": failure", `status "kernelgate / scale" on ` + head + ": failure"},
				"checks": {`check "kernelgate" on ` + head + ": completed failure", `check "kernelgate / scale" on ` + head + ": completed failure"},
			}[report]
			want = append(want, "comment on #1", fmt.Sprintf(`check "kernelgate attempts by walt / kernels/scale" on %.12s: completed neutral`, w.repo.Head("main")))
			if d := cmp.Diff(want, headings(j.log)); d != "" {
				t.Errorf("what would be written is different (-want +got):\n%s\n%s", d, j.log)
			}
			_, dry, _ := strings.Cut(j.log, "Dry run: nothing was written to GitHub.")
			w.holds(dry, "DEFER (too-slow) scale: ", "/actions/runs/77", "### ", "<details>", "attempt 1 on `lab`")
			if strings.Contains(dry, "<!-- kernelgate:") {
				t.Errorf("it shows what GitHub hides:\n%s", dry)
			}
		})
	}
}

// headings returns the headings of what a dry run would write.
func headings(log string) (all []string) {
	for line := range strings.Lines(log) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "─── "); ok {
			all = append(all, strings.TrimSuffix(text, " ───"))
		}
	}
	return all
}

// TestDryRunOfACommand checks that existing objects are updated and a command is answered.
func TestDryRunOfACommand(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
	w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
	before, checks := pr.Comments()[0].Body, len(w.repo.Checks(pr.HeadSHA()))
	asked, err := pr.Comment("walt", "/rebench rounds=6")
	w.no(err)
	j := w.rehearse("issue_comment")
	w.must(j, "DEFER", "too-slow", 1)
	w.holds(j.log, `reaction "eyes" to comment `, `reaction "rocket" to comment `, "─── comment that is there, ", "─── comment on #1 ───", "attempt 2", "> `/rebench rounds=6`")
	there := pr.Comments()
	if len(there) != 2 || there[0].Body != before || len(there[1].Reactions) > 0 || there[1].ID != asked.ID || len(w.repo.Checks(pr.HeadSHA())) != checks {
		t.Errorf("something was written: %d comments, %d checks", len(there), len(w.repo.Checks(pr.HeadSHA())))
	}
	// The real job counts as if there had been no dry run.
	w.must(w.act("issue_comment"), "DEFER", "too-slow", 1)
	if body := pr.Comments()[0].Body; !strings.Contains(body, "attempt 2") || strings.Contains(body, "attempt 3") {
		t.Errorf("the comment is now\n%s", body)
	}
}

// TestDryRunOfNothing checks that a job with nothing to write says so.
func TestDryRunOfNothing(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
	_, err := pr.Comment("walt", "Nice.")
	w.no(err)
	j := w.rehearse("issue_comment")
	w.must(j, "", "", 0)
	w.holds(j.log, "Dry run: nothing would be written to GitHub.")
}
