package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// soon is the time limit for answers that need no measurement.
const soon = time.Minute

// concluded waits for a completed required check of the head, other than an earlier one.
func (w *world) concluded(pr *embedded.PR, earlier int64) (c embedded.Check, err error) {
	err = w.Wait(pr, "a verdict", w.patience, func() bool {
		c, _ = w.Check(pr)
		return c.Status == "completed" && c.ID != earlier
	})
	return c, err
}

// A doneRun is a finished run with the bot's verdict.
type doneRun struct {
	ledger.RunRow
	verdict *gates.Verdict
}

// lastRun reads the newest run of a pull request.
func (w *world) lastRun(pr *embedded.PR) (a doneRun, err error) {
	id := w.ID(pr)
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the verdict on #%d: %w", pr.Number(), err)
		}
	}()
	last, err := w.Bot.Journal.Last(w.Ctx, id.String())
	if err != nil {
		return a, err
	}
	if err := w.Bot.Ledger.WaitFor(w.Ctx, last.Seq); err != nil {
		return a, err
	}
	runs, err := w.Bot.Ledger.Runs(w.Ctx, ledger.RunFilter{Change: id, Limit: 1})
	if err != nil {
		return a, err
	}
	if len(runs) == 0 || runs[0].Verdict == "" {
		return a, fmt.Errorf("the ledger has none, though %s", w.LastCheck(pr))
	}
	a.RunRow = runs[0]
	text, err := w.Bot.Journal.Artifacts.Read(w.Ctx, a.Verdict)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a.verdict)
}

// commented waits until the sticky comment includes a run.
func (w *world) commented(pr *embedded.PR, a doneRun) error {
	marker, row := present.Marker(w.ID(pr)), fmt.Sprintf("attempt %d on `%s`", a.Attempt, a.Runner)
	return w.Wait(pr, "a comment", soon, func() bool {
		return slices.ContainsFunc(pr.Comments(), func(c embedded.Comment) bool {
			return c.Author == w.App.Login() && strings.HasPrefix(c.Body, marker) && strings.Contains(c.Body, row)
		})
	})
}

// reacted waits for a reaction of the bot to a comment.
func (w *world) reacted(pr *embedded.PR, to embedded.Comment, content string) error {
	return w.Wait(pr, "an answer to "+to.Body, soon, func() bool {
		for _, c := range pr.Comments() {
			if c.ID == to.ID {
				return len(c.Reactions[content]) > 0
			}
		}
		return false
	})
}

// replied waits for the bot's reply to a comment.
func (w *world) replied(pr *embedded.PR, to embedded.Comment) (text string, err error) {
	marker := present.ReplyMarker(fmt.Sprintf("comment-%d", to.ID))
	err = w.Wait(pr, "a reply to "+to.Body, soon, func() bool {
		for _, c := range pr.Comments() {
			if body, ok := strings.CutPrefix(c.Body, marker); ok && c.Author == w.App.Login() {
				_, text, _ = strings.Cut(strings.TrimSpace(body), "\n") // below the quoted command
				return true
			}
		}
		return false
	})
	return strings.TrimSpace(text), err
}
