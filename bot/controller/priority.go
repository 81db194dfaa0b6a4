package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// On the day of its installation the bot finds hundreds of open pull requests that nobody waits
// for, and GitHub allows 500 writes an hour. So it publishes verdicts, replies and merge groups
// first, and old pull requests without a measurement when there is room.

// restsAfter is how long a pull request counts as active after its last event.
const restsAfter = time.Hour

// priorityOf returns how urgent it is to work on a change and to publish it.
func (k *Controller) priorityOf(s *change.State) client.Priority {
	switch {
	case s.ID.Kind != change.Pull || !s.Facts.Open || awaited(s):
		return client.Urgent
	case len(s.ChecksOf(s.Facts.Head)) > 0: // GitHub may show an outdated verdict, and let people merge
		return client.Urgent
	case k.Now().Sub(touched(s)) > restsAfter:
		return client.Backlog
	case s.NeedsPlan(): // it may change a kernel
		return client.Urgent
	}
	return client.Routine
}

// awaited reports whether somebody waits for a measurement or for the reply to a command.
func awaited(s *change.State) bool {
	return len(s.Wanted()) > 0 || len(s.Unanswered()) > 0 || slices.ContainsFunc(s.Commands, unreplied) ||
		slices.ContainsFunc(s.Runs, ended) || slices.ContainsFunc(s.ExtraRuns, ended)
}

func ended(r change.Run) bool { return !r.Unfinished() }

func unreplied(c change.Command) bool { return c.Answered && c.Comment != 0 && c.Replied == 0 }

// touched returns the time of the last event of a pull request.
func touched(s *change.State) time.Time {
	at := s.Facts.Updated
	for _, c := range s.Commands {
		if c.When.After(at) {
			at = c.When
		}
	}
	return at
}

// backlogPause is the shortest wait of an old pull request for write budget: budget for one write
// must not wake hundreds of tasks each second.
const backlogPause = 5 * time.Minute

// hasWriteBudget returns a requeue error if there is no budget for a write that is not urgent.
func (k *Controller) hasWriteBudget(ctx context.Context, s *change.State) error {
	err := k.GitHub.Shed(ctx, s.Facts.Repo)
	refusal, ok := errors.AsType[*client.Error](err)
	if !ok || !errors.Is(err, client.ErrShed) {
		return err
	}
	now := k.Now()
	due := refusal.RetryAt
	if soon := now.Add(backlogPause); k.priorityOf(s) == client.Backlog && due.Before(soon) {
		due = soon
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.putOffLogged) >= time.Hour { // hundreds may wait: one line in the log is enough
		k.putOffLogged = now
		k.Log.Info("pull requests without a measurement are shown later: GitHub allows few writes, and verdicts come first",
			"change", s.ID.String(), "repo", s.Facts.Repo, "again_at", due)
	}
	return requeueAt(due)
}
