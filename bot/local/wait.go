package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// Wait returns once cond holds. After the time limit it returns an error with what GitHub showed
// last.
func (w *World) Wait(pr *embedded.PR, what string, patience time.Duration, cond func() bool) error {
	tooLong := errors.New("too long")
	ctx, cancel := context.WithTimeoutCause(w.Ctx, patience, tooLong)
	defer cancel()
	err := w.Hub.WaitFor(ctx, cond)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tooLong):
		return fmt.Errorf("waiting for %s on #%d: nothing for %v; %s (see %s)", what, pr.Number(), patience, w.LastCheck(pr), w.LogPath())
	}
	return fmt.Errorf("waiting for %s on #%d: %w", what, pr.Number(), err)
}

// LastCheck describes the required check.
func (w *World) LastCheck(pr *embedded.PR) string {
	c, ok := w.Check(pr)
	if !ok {
		return "there is no check on its head yet"
	}
	return fmt.Sprintf("its check is %s: %s\n%s", strings.TrimSpace(c.Status+" "+c.Conclusion), c.Title, indent(strings.TrimSpace(c.Summary)))
}

// Check returns the required check of a pull request's head.
func (w *World) Check(pr *embedded.PR) (embedded.Check, bool) {
	return w.Repo.Check(pr.HeadSHA(), Required)
}

// ID returns the bot's id of a pull request.
func (w *World) ID(pr *embedded.PR) change.ID {
	return change.ID{Kind: change.Pull, Repo: w.Repo.ID(), Number: pr.Number()}
}

// Standing describes the required check in one line.
func (w *World) Standing(pr *embedded.PR) string {
	c, ok := w.Check(pr)
	if !ok {
		return "has no check yet"
	}
	return fmt.Sprintf("%s: %s", strings.TrimSpace(c.Status+" "+c.Conclusion), c.Title)
}
