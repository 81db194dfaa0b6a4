package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/publish"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/runners"
)

// publishChange brings GitHub in step with what is known of a change. What somebody waits for is
// published at once; what nobody has measured, when there is room. What is still under way
// can be left out where writes are few, and is told no more often than its progress would be.
func (k *Controller) publishChange(ctx context.Context, id change.ID) error {
	for {
		s, err := k.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 || s.Facts.Head == "" || k.repos.Suspended(id.Repo) {
			return nil
		}
		others, err := k.sharersOf(ctx, s, s.Facts.Head)
		if err != nil {
			return err
		}
		if s.Facts.Open || !s.NeedsPublish { // one that is closed has its last word first
			if err := k.notifySharers(ctx, s, others); err != nil {
				return err
			}
		}
		if s.NeedsPlan() && !k.isUnpublished(s) {
			return nil
		}
		p := k.priorityOf(s)
		if due := k.firstSeenAt(s).Add(k.planPatience(p)); s.NeedsPlan() && k.Now().Before(due) {
			return requeueAt(due) // most plans are there before that, and say more
		}
		ends := s.NeedsPublish && concluded(s)
		if !s.NeedsPublish && !k.hasProgress(s) {
			return nil
		}
		as := client.WithPriority(ctx, p)
		if ends {
			err = k.hasWriteBudget(as, s)
		} else {
			err = k.mayPublishProgress(ctx, s)
		}
		if err == nil {
			err = k.publishNow(as, s, others, ends)
		}
		if errors.Is(err, client.ErrUnavailable) {
			k.repos.Suspend(id.Repo, s.Facts.Repo, err)
			return nil
		}
		if errors.Is(err, publish.ErrNotVisible) && k.isDeleted(ctx, s) {
			return nil
		}
		if err != nil || !s.NeedsPublish {
			return err
		}
	}
}

// isDeleted asks GitHub whether it does not show a change because the repository is gone, and
// leaves the repository alone if so.
func (k *Controller) isDeleted(ctx context.Context, s *change.State) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := k.GitHub.Repository(ctx, s.Facts.Repo)
	if !client.NotFound(err) {
		return false
	}
	k.repos.Suspend(s.ID.Repo, s.Facts.Repo, err)
	return true
}

func (k *Controller) publishNow(ctx context.Context, s *change.State, others []*change.State, ends bool) error {
	if !ends {
		k.lastPublished.Add(s.ID, k.Now())
	}
	if s.NeedsPublish {
		return k.publish(ctx, s, others)
	}
	return k.publishProgress(client.LowPriority(ctx), s, others)
}

// mayPublishProgress says when something unfinished can be told, if not now: that a change was
// heard of, at once; all else every so often, so that what happens quickly after that is
// one word, and not three.
func (k *Controller) mayPublishProgress(ctx context.Context, s *change.State) error {
	last, told := k.lastPublished.Get(s.ID)
	if due := last.Add(k.ProgressEvery); told && !k.isUnpublished(s) && k.Now().Before(due) {
		return requeueAt(due)
	}
	return k.GitHub.Shed(client.LowPriority(ctx), s.Facts.Repo)
}

// backlogPlanTime is how long the plans of old pull requests may take before their checks say
// that they are still to be read: on the first day that would be a second write for each.
const backlogPlanTime = 10 * time.Minute

// planPatience is how long a plan is waited for before something is shown without it.
func (k *Controller) planPatience(p client.Priority) time.Duration {
	if p == client.Backlog {
		return max(k.ProgressEvery, backlogPlanTime)
	}
	return k.ProgressEvery
}

// firstSeenAt is when the head was first to be shown.
func (k *Controller) firstSeenAt(s *change.State) time.Time {
	if at, ok := k.firstSeen.Get(s.Facts.Head); ok {
		return at
	}
	k.firstSeen.Add(s.Facts.Head, k.Now())
	return k.Now()
}

// isUnpublished tells whether GitHub shows nothing for the head yet.
func (k *Controller) isUnpublished(s *change.State) bool {
	return !s.ID.Kind.OnMain() && len(s.ChecksOf(s.Facts.Head)) == 0
}

// concluded tells whether there is something that somebody waits for: a verdict, a
// question to people, or the answer to a command.
func concluded(s *change.State) bool {
	if s.NeedsPlan() {
		return false
	}
	return len(s.Wanted()) == 0 || slices.ContainsFunc(s.Runs, ended) || slices.ContainsFunc(s.SideRuns, ended) || slices.ContainsFunc(s.Commands, unreplied)
}

// Progress is told by a runner through package fleet. It is shown, and not
// kept.
func (k *Controller) Progress(job string, p runners.Event) {
	id, err := change.OfJob(job)
	if err != nil {
		return
	}
	k.progress.Add(job, runners.LogEntry{Event: p, At: k.Now()})
	if last, _ := k.lastPublished.Get(id); k.Now().Sub(last) >= k.ProgressEvery {
		k.publishQueue.add(id)
	}
	k.publishPositions()
}

// queuePosition is where a run stands in line.
func (k *Controller) queuePosition(r change.Run) (scheduler.Position, bool) {
	if r.Phase != change.Queued {
		return scheduler.Position{}, false
	}
	return k.Jobs.Position(r.Job)
}

// publishPositions has those shown that stand elsewhere in line than was told, every now and then while runners are at work: that
// is when it moves.
func (k *Controller) publishPositions() {
	k.mu.Lock()
	due := k.Now().Sub(k.positionsChecked) >= 4*k.ProgressEvery
	if due {
		k.positionsChecked = k.Now()
	}
	k.mu.Unlock()
	if !due {
		return
	}
	for job, place := range k.Jobs.Positions() {
		if id, err := change.OfJob(job); err == nil && k.positionChanged(job, place) {
			k.publishQueue.add(id)
		}
	}
}

// positionChanged tells whether a job's place is worth a write: it is held back, or is not any more, or half of those before it
// are gone. So a job of which 64 go first is told of seven times, and not 64.
func (k *Controller) positionChanged(job string, p scheduler.Position) bool {
	told, ok := k.positions.Get(job)
	if !ok {
		return p.Ahead > 0 || p.Held != nil
	}
	return (told.Held == nil) != (p.Held == nil) || p.Ahead < told.Ahead && p.Ahead <= told.Ahead/2 || p.Ahead > 2*told.Ahead+1
}

func (k *Controller) forgetJob(job string) {
	k.progress.Remove(job)
	k.positions.Remove(job)
}

// hasProgress tells whether a runner has said something since the last time that
// anything was shown.
func (k *Controller) hasProgress(s *change.State) bool {
	last, _ := k.lastPublished.Get(s.ID)
	return slices.ContainsFunc(s.Wanted(), func(r change.Run) bool {
		if place, ok := k.queuePosition(r); ok && k.positionChanged(r.Job, place) {
			return true
		}
		p, ok := k.progress.Get(r.Job)
		return ok && !p.At.Before(last)
	})
}
