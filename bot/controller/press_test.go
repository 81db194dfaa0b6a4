package controller_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/controller"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/grammar"
)

// A button on a page is the command by whoever pressed it: the same role is asked for,
// the same press twice is one, and an older head is let be.
func TestPress(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("slow", tooSlow, embedded.PROptions{})
	w.concluded(pr.HeadSHA(), "failure")
	id := change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
	for _, p := range []struct{ press, by string }{{"A", "rita"}, {"B", "eve"}, {"C", "nobody-here"}, {"D", "walt"}, {"D", "walt"}} {
		w.no(w.running.bot.SubmitCommand(w.ctx, id, p.press, p.by, pr.HeadSHA(), grammar.Rebench{}))
		w.settle()
	}
	w.concluded(pr.HeadSHA(), "failure")
	for head, id := range map[string]change.ID{strings.Repeat("0", 40): id, pr.HeadSHA(): {Kind: change.Pull, Repo: w.repo.ID(), Number: 99}} {
		if err := w.running.bot.SubmitCommand(w.ctx, id, "E", "walt", head, grammar.Cancel{}); !errors.Is(err, controller.ErrMovedOn) {
			t.Errorf("%s at %s: %v", id, head, err)
		}
	}
	s, err := w.running.ledger.Change(w.ctx, id)
	w.no(err)
	var got []string
	for _, c := range s.Commands {
		word := "refused"
		if c.OK {
			word = "followed"
		}
		got = append(got, c.By+" "+word)
	}
	if text := strings.Join(got, ", "); text != "rita refused, eve refused, nobody-here refused, walt followed" {
		t.Errorf("%s", text)
	}
}
