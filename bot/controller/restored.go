package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A restored journal does not know what the bot did after the backup: GitHub may show a check in progress for a verdict that
// the journal has, and nobody sends those webhooks again. So the leader reads every open pull request again and publishes
// everything about it. Pull requests that were opened since then come with the first resync.
//
// Decisions that were made after the backup (/override, /approve-policy, /ok-to-test) are lost: a comment does not say which
// head its author saw, and a decision holds for one head. Only /rebench is read again, because it grants nothing.

// rereadLoop does that after every restore. It ends with ctx.
func (k *Controller) rereadLoop(ctx context.Context) error {
	backoff := k.Backoff
	for {
		pause := k.ResyncEvery // a bot on standby may have found the loss
		if err := k.reread(ctx); ctx.Err() != nil {
			return nil
		} else if err != nil {
			pause, backoff = backoff, min(2*backoff, time.Minute)
			k.Log.Warn("not everything could be read again after the restore; it is tried again", "again_in", pause.String(), "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *Controller) reread(ctx context.Context) error {
	r, pending, err := k.Journal.Restored(ctx)
	if err != nil || !pending {
		return err
	}
	ids, err := k.Ledger.OpenChanges(ctx)
	if err != nil {
		return fmt.Errorf("asking the ledger: %w", err)
	}
	k.Log.Warn("the journal was restored or has lost events: every open change is read again and published", "changes", len(ids), "since", r.Since)
	var failed error
	for _, id := range ids {
		if err := k.rereadChange(ctx, id, r); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failed != nil {
		return failed
	}
	k.Log.Info("every open change was read again", "changes", len(ids))
	return k.Journal.RestoreDone(ctx, r)
}

// rereadChange compares a change with GitHub and publishes it again.
func (k *Controller) rereadChange(ctx context.Context, id change.ID, r journal.Restored) error {
	s, err := k.states.load(ctx, id)
	if err != nil {
		return err
	}
	if id.Kind == change.Pull {
		if after, err := k.refresh(ctx, id, s.Facts.Repo); err == nil {
			s = after
		} else if !client.IsPermanent(err) {
			return err
		}
		if err := k.rereadCommands(ctx, s, r.Since); err != nil && !client.IsPermanent(err) {
			return err
		}
	}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if !now.Facts.Open {
			return nil, nil
		}
		return change.RepublishAsked{}, nil
	})
	k.enqueueChange(id)
	return err
}

// rereadCommands records every /rebench that was written after the backup and that the journal lacks.
func (k *Controller) rereadCommands(ctx context.Context, s *change.State, since time.Time) error {
	if since.IsZero() || !s.Facts.Open || !s.Facts.Updated.IsZero() && s.Facts.Updated.Before(since.Add(-time.Minute)) {
		return nil
	}
	listing, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	comments, err := k.GitHub.ListComments(listing, s.Facts.Repo, s.ID.Number)
	if err != nil {
		return err
	}
	for _, c := range comments {
		if c.Bot || c.Mine || c.CreatedAt.Before(since.Add(-time.Minute)) { // GitHub's clock and ours may differ
			continue
		}
		said, ok := grammar.Parse(c.Body)
		if _, again := said.Command.(grammar.Rebench); !ok || !again {
			continue
		}
		if err := k.recordCommand(ctx, s.ID, change.Asked{ID: "comment-" + strconv.FormatInt(c.ID, 10), Comment: c.ID, By: c.Author, Request: said}); err != nil {
			return err
		}
	}
	return nil
}
