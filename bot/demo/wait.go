package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
)

// soon is when a bot that measures nothing for it must have answered.
const soon = time.Minute

// wait returns once something is so on GitHub. It is patient, but not for ever:
// then it tells what GitHub showed last.
func (w *world) wait(pr *embedded.PR, what string, patience time.Duration, cond func() bool) error {
	tooLong := errors.New("too long")
	ctx, cancel := context.WithTimeoutCause(w.ctx, patience, tooLong)
	defer cancel()
	err := w.hub.WaitFor(ctx, cond)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tooLong):
		return fmt.Errorf("waiting for %s on #%d: nothing for %v; %s (see %s)", what, pr.Number(), patience, w.lastCheck(pr), w.logPath())
	}
	return fmt.Errorf("waiting for %s on #%d: %w", what, pr.Number(), err)
}

// lastCheck is what the required check says.
func (w *world) lastCheck(pr *embedded.PR) string {
	c, ok := w.repo.Check(pr.HeadSHA(), required)
	if !ok {
		return "there is no check on its head yet"
	}
	return fmt.Sprintf("its check is %s: %s\n%s", strings.TrimSpace(c.Status+" "+c.Conclusion), c.Title, indent(strings.TrimSpace(c.Summary)))
}

// concluded waits for a required check of the head other than an earlier one.
func (w *world) concluded(pr *embedded.PR, earlier int64) (c embedded.Check, err error) {
	err = w.wait(pr, "a verdict", w.patience, func() bool {
		c, _ = w.repo.Check(pr.HeadSHA(), required)
		return c.Status == "completed" && c.ID != earlier
	})
	return c, err
}

func (w *world) id(pr *embedded.PR) change.ID {
	return change.ID{Kind: change.Pull, Repo: w.repo.ID(), Number: pr.Number()}
}

// A doneRun is a run that is done, with its verdict as the bot judged it.
type doneRun struct {
	ledger.RunRow
	verdict *gates.Verdict
}

// lastRun reads a pull request's newest run.
func (w *world) lastRun(pr *embedded.PR) (a doneRun, err error) {
	id := w.id(pr)
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the verdict on #%d: %w", pr.Number(), err)
		}
	}()
	last, err := w.bot.Journal.Last(w.ctx, id.String())
	if err != nil {
		return a, err
	}
	if err := w.bot.Ledger.WaitFor(w.ctx, last.Seq); err != nil {
		return a, err
	}
	runs, err := w.bot.Ledger.Runs(w.ctx, ledger.RunFilter{Change: id, Limit: 1})
	if err != nil {
		return a, err
	}
	if len(runs) == 0 || runs[0].Verdict == "" {
		return a, fmt.Errorf("the ledger has none, though %s", w.lastCheck(pr))
	}
	a.RunRow = runs[0]
	text, err := w.bot.Journal.Artifacts.Read(w.ctx, a.Verdict)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a.verdict)
}

// commented waits until the sticky comment tells of a run too.
func (w *world) commented(pr *embedded.PR, a doneRun) error {
	marker, row := present.Marker(w.id(pr)), fmt.Sprintf("attempt %d on `%s`", a.Attempt, a.Runner)
	return w.wait(pr, "a comment", soon, func() bool {
		return slices.ContainsFunc(pr.Comments(), func(c embedded.Comment) bool {
			return c.Author == w.app.Login() && strings.HasPrefix(c.Body, marker) && strings.Contains(c.Body, row)
		})
	})
}

// reacted waits for one reaction of the bot to a comment.
func (w *world) reacted(pr *embedded.PR, to embedded.Comment, content string) error {
	return w.wait(pr, "an answer to "+to.Body, soon, func() bool {
		for _, c := range pr.Comments() {
			if c.ID == to.ID {
				return len(c.Reactions[content]) > 0
			}
		}
		return false
	})
}

// replied waits for the bot's answer to a comment in words.
func (w *world) replied(pr *embedded.PR, to embedded.Comment) (text string, err error) {
	marker := present.ReplyMarker(fmt.Sprintf("comment-%d", to.ID))
	err = w.wait(pr, "a reply to "+to.Body, soon, func() bool {
		for _, c := range pr.Comments() {
			if body, ok := strings.CutPrefix(c.Body, marker); ok && c.Author == w.app.Login() {
				_, text, _ = strings.Cut(strings.TrimSpace(body), "\n") // below the quoted command
				return true
			}
		}
		return false
	})
	return strings.TrimSpace(text), err
}
