package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// reconcile does what the state of a change requires, step by step, until only publishing is left.
// Each step can be repeated: after a crash between a step and its record, the step runs again.
func (k *Controller) reconcile(ctx context.Context, id change.ID) error {
	for {
		s, err := k.states.load(ctx, id)
		if err != nil {
			return err
		}
		if s.Seq == 0 {
			return nil
		}
		again, err := k.reconcileStep(ctx, s)
		if errors.Is(err, client.ErrUnavailable) {
			k.repos.Suspend(id.Repo, s.Facts.Repo, err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s (%s): %w", id, s.Facts.Repo, err)
		}
		if again {
			k.publishQueue.add(id)
			continue
		}
		if s.NeedsPublish {
			k.publishQueue.addIfAbsent(id)
		}
		if due, doubtful := k.recheckConflict(id); doubtful {
			if k.isStale(id) {
				continue
			}
			return requeueAt(due)
		}
		return nil
	}
}

// reconcileStep does the most urgent step, and reports whether there may be more.
func (k *Controller) reconcileStep(ctx context.Context, s *change.State) (bool, error) {
	switch {
	case len(s.Dropping) > 0:
		return true, k.cancelJobs(ctx, s)
	case k.repos.Suspended(s.ID.Repo):
		return false, k.endIfRemoved(ctx, s)
	case !k.repos.Confirmed(s.ID.Repo):
		return true, k.confirmName(ctx, s)
	case s.Facts.Head == "": // known only from a comment
		return s.Facts.Open, k.timed(ctx, s, "look", k.fetchUnknown)
	case s.Facts.Open && s.ID.Kind == change.Group && len(s.Facts.Members) == 0:
		return true, k.findMembers(ctx, s)
	case k.isStale(s.ID):
		return true, k.timed(ctx, s, "look", k.refreshStale)
	case s.NeedsPlan():
		return true, k.timed(ctx, s, "plan", k.plan)
	case k.isUnread(s.ID):
		return true, k.readReviews(ctx, s)
	case len(s.Unanswered()) > 0:
		return true, k.answer(ctx, s, s.Unanswered()[0])
	}
	if expired, err := k.endExpired(ctx, s); expired || err != nil {
		return expired, err
	}
	return false, k.enqueueJobs(ctx, s)
}

// endExpired ends runs that no runner took while their bundles were kept. Otherwise a change would wait
// forever for a device that nobody has. It reports whether there were any.
func (k *Controller) endExpired(ctx context.Context, s *change.State) (ended bool, err error) {
	for _, run := range s.Wanted() {
		if run.Phase != change.Queued || run.Search != nil || k.Now().Sub(run.Asked) < journal.KeepBundles {
			continue
		}
		if _, err := k.jobOf(ctx, run); !errors.Is(err, errExpired) {
			continue
		}
		why := fmt.Sprintf("no runner labelled %s took the job within %d days: %v", strings.Join(run.Labels, " or "), int(journal.KeepBundles/(24*time.Hour)), errExpired)
		if err := k.Lost(ctx, run.Job, run.Token, why); err != nil {
			return ended, err
		}
		if _, err := k.Jobs.Cancel(ctx, run.Job); err != nil {
			return ended, fmt.Errorf("cancelling %s: %w", run.Job, err)
		}
		ended = true
	}
	return ended, nil
}

// cancelJobs removes jobs from the queue that nobody needs. A runner that works on one stops within
// seconds.
func (k *Controller) cancelJobs(ctx context.Context, s *change.State) error {
	for _, job := range s.Dropping {
		if _, err := k.Jobs.Cancel(ctx, job); err != nil {
			return fmt.Errorf("cancelling %s: %w", job, err)
		}
		k.forgetJob(job)
	}
	_, err := k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		return change.Dropped{Jobs: s.Dropping}, nil
	})
	return err
}

// enqueueJobs enqueues every job that the change needs. A job that is queued or leased already
// stays as it is.
func (k *Controller) enqueueJobs(ctx context.Context, s *change.State) error {
	for _, run := range s.Wanted() {
		if run.Phase != change.Queued {
			continue
		}
		if err := k.Jobs.Enqueue(ctx, jobs.Job{
			Job: scheduler.Job{ID: run.Job, Labels: run.Labels, Build: run.Build, Kernel: run.Name, Class: classOf(s.ID.Kind, run), Repo: s.Facts.Repo, Author: s.Facts.Author}, Bundle: run.Bundle,
		}); err != nil {
			return fmt.Errorf("queueing %s: %w", run.Job, err)
		}
		if place, ok := k.queuePosition(run); ok && k.positionChanged(run.Job, place) {
			k.publishQueue.add(s.ID)
		}
	}
	return nil
}

// classOf returns how urgent a run is.
func classOf(kind change.Kind, r change.Run) scheduler.Class {
	switch {
	case kind == change.Group:
		return scheduler.MergeQueue
	case kind == change.Push:
		return scheduler.Push
	case kind.Scheduled():
		return scheduler.Sweep
	case r.ExtraRun != nil || r.Search != nil || r.Attempt > 1:
		return scheduler.Command
	}
	return scheduler.PullRequest
}

// plan asks the planner, and reuses existing results.
func (k *Controller) plan(ctx context.Context, s *change.State) error {
	proposal, err := k.Planner.Plan(ctx, s.ID, s.Facts)
	if errors.Is(err, planner.ErrMoved) {
		return k.refreshHead(ctx, s, err)
	}
	if errors.Is(err, planner.ErrBaseGone) && s.ID.Kind == change.Pull {
		return k.confirmBaseGone(ctx, s, err)
	}
	if err != nil {
		return errors.Join(err, k.reportPlanFailure(ctx, s))
	}
	if n, _ := k.planFailures.Get(s.ID); s.ID.Kind == change.Pull && proposal.Base == s.Facts.Head && n < lagFailures {
		k.planFailures.Add(s.ID, n+1)
		return k.refreshHead(ctx, s, errContained)
	}
	k.planFailures.Remove(s.ID)
	if proposal.QueueBranch != "" {
		if err := k.recordQueueBranch(ctx, s, proposal.QueueBranch); err != nil {
			return err
		}
	}
	for i := range proposal.Kernels {
		if err := k.reuseEvidence(ctx, s, proposal, &proposal.Kernels[i]); err != nil {
			return err
		}
	}
	if err := k.rejudgePast(ctx, s.ID, &proposal); err != nil {
		return err
	}
	k.count(func(c *Counts) { c.Planned++ })
	after, err := k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		if now.Facts.PlanKey() != proposal.Key {
			return nil, nil // it is planned again
		}
		return change.Planned{Plan: proposal.Plan}, nil
	})
	if err == nil {
		k.markUnread(after)
	}
	return err
}

// errContained is returned for a pull request that GitHub will report as merged in a moment. A
// comparison with itself would replace the verdict that it was merged with.
var errContained = errors.New("the base branch has all commits of the pull request already, and GitHub does not say that it is merged")

// refreshHead asks GitHub again for the head. If GitHub still names a head that git cannot fetch,
// its replicas disagree, and the bot retries later.
func (k *Controller) refreshHead(ctx context.Context, s *change.State, cause error) error {
	if s.ID.Kind != change.Pull {
		return cause
	}
	after, err := k.refresh(ctx, s.ID, s.Facts.Repo)
	if client.NotFound(err) {
		return cause
	}
	if err != nil {
		return err
	}
	if after.Facts.Head == s.Facts.Head && after.Facts.Open {
		return cause
	}
	return nil
}

// A repository that cannot be read may be readable in a minute. After this many failures, the check
// says so.
const patience = 3

// reportPlanFailure publishes on the check that planning fails.
func (k *Controller) reportPlanFailure(ctx context.Context, s *change.State) error {
	n, _ := k.planFailures.Get(s.ID)
	n++
	k.planFailures.Add(s.ID, n)
	if n < patience || !k.GitHub.UsesChecks() || ctx.Err() != nil {
		return nil
	}
	for _, have := range s.ChecksOf(s.Facts.Head) {
		if have.Done {
			continue
		}
		err := k.GitHub.UpdateCheck(client.LowPriority(ctx), s.Facts.Repo, have.ID, client.Check{
			Status: "in_progress", Title: fmt.Sprintf("The change cannot be read (%d attempts)", n),
			// The error may name folders and hosts, which must not become public.
			Summary: fmt.Sprintf("The bot tries again. If this does not help, its operator finds the reason in its log, under `%s`.\n", s.ID),
		})
		if client.NotFound(err) {
			return k.lostCheck(ctx, s, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
