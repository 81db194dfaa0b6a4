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

// publishChange writes the state of a change to GitHub. It publishes a change that people wait for at
// once; a pull request without a measurement waits for write budget. It leaves out progress when the
// budget is low, and limits the rate of progress.
func (k *Controller) publishChange(ctx context.Context, id change.ID) error {
	for {
		s, err := k.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 || s.Facts.Head == "" || k.repos.Suspended(id.Repo) {
			return nil
		}
		if !k.repos.Confirmed(id.Repo) {
			k.reconcileQueue.addIfAbsent(id) // it confirms the name, and then this is published
			return nil
		}
		with, err := k.sharersOf(ctx, s, s.Facts.Head)
		if err != nil {
			return err
		}
		if s.Facts.Open || !s.NeedsPublish { // a closed pull request gets its final text first
			if err := k.notifySharers(ctx, s, with.open); err != nil {
				return err
			}
		}
		retracts := retracts(s, with)
		if s.NeedsPlan() && !k.isUnpublished(s) && !retracts {
			return nil
		}
		p := k.priorityOf(s)
		if due := k.firstSeenAt(s).Add(k.planPatience(p)); s.NeedsPlan() && !retracts && k.Now().Before(due) {
			return requeueAt(due) // most plans are ready before that, and have more to show
		}
		ends := s.NeedsPublish && (retracts || concluded(s))
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
			err = k.publishNow(as, s, with, ends)
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

// isDeleted asks GitHub whether the repository of a change was deleted or lost its name, and
// suspends the repository if so.
func (k *Controller) isDeleted(ctx context.Context, s *change.State) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := k.GitHub.Repository(ctx, s.Facts.Repo)
	if err == nil && r.ID != s.ID.Repo {
		err = otherRepository(s.Facts.Repo, r.ID)
	} else if !client.NotFound(err) {
		return false
	}
	k.repos.Suspend(s.ID.Repo, s.Facts.Repo, err)
	return true
}

func (k *Controller) publishNow(ctx context.Context, s *change.State, with sharing, ends bool) error {
	if !ends {
		k.lastPublished.Add(s.ID, k.Now())
	}
	if s.NeedsPublish {
		return k.publish(ctx, s, with)
	}
	return k.publishProgress(client.LowPriority(ctx), s, with)
}

// mayPublishProgress returns when progress may be published. The first notice of a change is
// published at once, and later progress at intervals, so that several quick steps are one write.
func (k *Controller) mayPublishProgress(ctx context.Context, s *change.State) error {
	last, told := k.lastPublished.Get(s.ID)
	if due := last.Add(k.ProgressEvery); told && !k.isUnpublished(s) && k.Now().Before(due) {
		return requeueAt(due)
	}
	return k.GitHub.Shed(client.LowPriority(ctx), s.Facts.Repo)
}

// backlogPlanTime is how long the plans of old pull requests may take before their checks say that
// the change is still being read. On the first day that text would cost a second write for each of
// them.
const backlogPlanTime = 10 * time.Minute

// planPatience is how long the bot waits for a plan before it publishes without it.
func (k *Controller) planPatience(p client.Priority) time.Duration {
	if p == client.Backlog {
		return max(k.ProgressEvery, backlogPlanTime)
	}
	return k.ProgressEvery
}

// firstSeenAt returns when the head first needed publishing.
func (k *Controller) firstSeenAt(s *change.State) time.Time {
	if at, ok := k.firstSeen.Get(s.Facts.Head); ok {
		return at
	}
	k.firstSeen.Add(s.Facts.Head, k.Now())
	return k.Now()
}

// retracts reports whether GitHub shows a conclusion on the head that is not about this change as it is now: it was
// reached for a different base or different rules, or by a change that is closed, or before another change had the same head. People
// could merge by it until there is a plan, so the bot does not wait for the plan.
func retracts(s *change.State, with sharing) bool {
	if !s.NeedsPlan() {
		return false
	}
	return len(s.Outdated()) > 0 || len(with.shown) > 0 || len(with.open) > 0 && len(s.Concluded(s.Facts.Head)) > 0
}

// isUnpublished reports whether GitHub shows nothing about the head yet.
func (k *Controller) isUnpublished(s *change.State) bool {
	return !s.ID.Kind.OnMain() && len(s.ChecksOf(s.Facts.Head)) == 0
}

// concluded reports whether somebody waits for what there is to publish: a verdict, a request for
// approval, or the reply to a command.
func concluded(s *change.State) bool {
	if s.NeedsPlan() {
		return false
	}
	return len(s.Wanted()) == 0 || slices.ContainsFunc(s.Runs, ended) || slices.ContainsFunc(s.ExtraRuns, ended) || slices.ContainsFunc(s.Commands, unreplied) || slices.ContainsFunc(s.Searches, change.Run.Reports)
}

// Progress is called by package fleet for each report of a runner. Progress is published, but not
// stored.
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

// queuePosition returns the position of a run in the queue.
func (k *Controller) queuePosition(r change.Run) (scheduler.Position, bool) {
	if r.Phase != change.Queued {
		return scheduler.Position{}, false
	}
	return k.Jobs.Position(r.Job)
}

// publishPositions publishes the queue positions that have changed. It runs at intervals while
// runners work, because only then the queue moves.
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

// positionChanged reports whether a new queue position is worth a write: the job is now held back
// or released, or the number of jobs ahead of it has halved. So a job behind 64 others gets seven
// updates instead of 64.
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

// hasProgress reports whether a runner has reported since the last publication.
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
