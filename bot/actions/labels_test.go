package actions_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestLabels checks that a label or a title causes a measurement only if it selects a different
// rule, or if the commit has no verdict yet. The workflow cannot decide this: the policy says which
// labels count.
func TestLabels(t *testing.T) {
	for name, report := range map[string]string{"checks": "checks", "statuses": "status"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, mayWrite)
			w.report = report
			all := w.attempts()
			pr := w.propose("tidy", source("speed 1.001"), embedded.PROptions{})
			w.no(pr.Label("walt", "documentation"))
			w.must(w.act("pull_request"), "DEFER", "too-slow", 1) // the job of the push was cancelled
			w.counted("without a verdict", all, 1)
			w.no(pr.Label("walt", "wip"))
			w.must(w.act("pull_request"), "", "", 0)
			w.no(pr.Edit("walt", "Tidy up", "", ""))
			w.must(w.act("pull_request"), "", "", 0)
			w.counted("a label and a title that no rule asks for", all, 1)

			w.no(pr.Label("walt", "refactoring"))
			w.no(pr.Label("walt", "late")) // GitHub cancels the waiting job of the previous label
			w.must(w.act("pull_request"), "PASS", "", 0)
			w.counted("another rule", all, 1, 2)
			w.no(pr.Unlabel("walt", "refactoring"))
			w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
			w.counted("the first rule again", all, 1, 2, 3)

			// A verdict for one base says nothing about another base.
			_, err := w.repo.Push("next", map[string]string{"README.md": "Next.\n"}, "Another branch")
			w.no(err)
			w.no(pr.Edit("walt", "", "", "next"))
			w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
			w.counted("another base", all, 1, 2, 3, 4)
		})
	}
}

// TestForgedHistory checks that the history in a comment does not skip a measurement: a program
// that repeats the texts of strangers could be made to write one.
func TestForgedHistory(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	all := w.attempts()
	pr := w.propose("tidy", source("speed 1.001"), embedded.PROptions{Labels: []string{"refactoring"}})
	w.must(w.act("pull_request"), "PASS", "", 0)
	parrot, err := client.NewToken(w.tokenOf("parrot", mayWrite), client.Options{Checks: true, BaseURL: w.hub.URL()})
	w.no(err)
	sticky := pr.Comments()[0].Body
	record := fmt.Sprintf(`[{"k":"scale","f":"kernels/scale","h":%q,"n":1,"r":"default","o":"PASS","l":"PASS"}]`, pr.HeadSHA())
	_, err = parrot.CreateComment(t.Context(), "olga/kernels", pr.Number(), sticky[:len("<!-- kernelgate:pr-1001-1 -->")]+"\n<!-- kernelgate:history:"+base64.StdEncoding.EncodeToString([]byte(record))+" -->")
	w.no(err)
	w.no(pr.Unlabel("walt", "refactoring"))
	w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
	w.counted("another rule, with a forged history", all, 1, 2)
}
