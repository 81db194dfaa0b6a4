package bot

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/dispatch"
	"github.com/kernelgate/kernelgate/bot/journal"
	"github.com/kernelgate/kernelgate/bot/planner"
)

// tend does what a change's state asks for, one step after the other, until it
// asks for nothing. Every step may be repeated: a crash after it was done and
// before that was written leads here again.
func (b *Bot) tend(ctx context.Context, id change.ID) error {
	for {
		s, err := b.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 {
			return nil
		}
		again, err := b.step(ctx, s)
		if err != nil {
			return fmt.Errorf("%s (%s): %w", id, s.Facts.Repo, err)
		}
		if !again {
			return nil
		}
	}
}

// step does the most urgent thing, and tells whether there may be another.
func (b *Bot) step(ctx context.Context, s *change.State) (bool, error) {
	switch {
	case len(s.Dropping) > 0:
		return true, b.drop(ctx, s)
	case s.NeedsPlan() && s.Dirty && b.unseen(s):
		// Reading the repository takes a moment: say at once that it is under way.
		return true, b.publish(ctx, s)
	case s.NeedsPlan():
		return true, b.plan(ctx, s)
	case len(s.Unanswered()) > 0:
		return true, b.answer(ctx, s, s.Unanswered()[0])
	}
	if err := b.enqueue(ctx, s); err != nil {
		return false, err
	}
	if s.Dirty {
		return true, b.publish(ctx, s)
	}
	return false, b.publishProgress(ctx, s)
}

// unseen tells whether GitHub shows nothing for the head yet.
func (b *Bot) unseen(s *change.State) bool {
	return s.ID.Kind != change.Push && len(s.ChecksOf(s.Facts.Head)) == 0
}

// drop takes jobs that nobody waits for out of the queue; a runner that works on
// one stops within seconds.
func (b *Bot) drop(ctx context.Context, s *change.State) error {
	for _, job := range s.Dropping {
		if _, err := b.Journal.Cancel(ctx, job); err != nil {
			return fmt.Errorf("cancelling %s: %w", job, err)
		}
		b.forget(job)
	}
	_, err := b.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		return change.Dropped{Jobs: s.Dropping}, nil
	})
	return err
}

// enqueue puts every job that is wanted in line. One that is there already, or at
// a runner, stays as it is.
func (b *Bot) enqueue(ctx context.Context, s *change.State) error {
	for _, run := range s.Wanted() {
		if run.Phase != change.Queued {
			continue
		}
		payload := dispatch.JobPayload{Bundle: run.Bundle, Digest: run.Bundle, Kernel: run.Kernel}
		if err := b.Journal.Enqueue(ctx, run.Label, journal.Job{ID: run.Job, Payload: payload.Encode()}); err != nil {
			return fmt.Errorf("queueing %s: %w", run.Job, err)
		}
	}
	return nil
}

func (b *Bot) forget(job string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.progress, job)
}

// plan asks the planner, and keeps what is known already.
func (b *Bot) plan(ctx context.Context, s *change.State) error {
	proposal, err := b.Planner.Plan(ctx, s.ID, s.Facts)
	if errors.Is(err, planner.ErrMoved) {
		return b.moved(ctx, s, err)
	}
	if err != nil {
		return errors.Join(err, b.troubled(ctx, s))
	}
	b.relieved(s.ID)
	for i := range proposal.Kernels {
		if err := b.known(ctx, s, proposal, &proposal.Kernels[i]); err != nil {
			return err
		}
	}
	b.count(func(c *Counts) { c.Planned++ })
	_, err = b.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Facts.PlanKey() != proposal.Key {
			return nil, nil // it is planned again
		}
		return change.Planned{Plan: proposal.Plan}, nil
	})
	return err
}

// moved asks GitHub for the head once more. Where that is still the one which
// cannot be fetched, GitHub's own parts disagree, and time will tell.
func (b *Bot) moved(ctx context.Context, s *change.State, cause error) error {
	if s.ID.Kind != change.Pull {
		return cause
	}
	after, err := b.refresh(ctx, s.ID, s.Facts.Repo)
	if err != nil {
		return err
	}
	if after.Facts.Head == s.Facts.Head {
		return cause
	}
	return nil
}
