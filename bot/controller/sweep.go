package controller

import (
	"context"
	"errors"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/sweep"
)

// ActiveRepositories are those that are not suspended, by number.
func (k *Controller) ActiveRepositories() map[int64]string {
	names := k.repos.Names()
	for repo := range names {
		if k.repos.Suspended(repo) {
			delete(names, repo)
		}
	}
	return names
}

// Listed reports whether GitHub has listed all repositories since this bot began to lead. A list that it refuses for good is empty.
func (k *Controller) Listed() bool { return k.listed.Load() }

// sweeper starts sweeps of the repositories that are not suspended.
func (k *Controller) sweeper() *sweep.Sweeper {
	return &sweep.Sweeper{
		Schedules: k.Sweeps, Interval: k.SweepEvery, Timeout: reconcileTimeout, Journal: k.Journal,
		Repositories: k.ActiveRepositories,
		Find:         k.sweepTarget, Begin: k.recordSweep, Log: k.Log, Now: k.Now,
	}
}

// sweepTarget returns the tip of a repository's default branch.
func (k *Controller) sweepTarget(ctx context.Context, name string, _ sweep.Schedule, _ sweep.Decision) (sweep.Target, error) {
	r, err := k.GitHub.Repository(ctx, name)
	if err != nil {
		return sweep.Target{}, err
	}
	head, err := k.Planner.Tip(ctx, r.FullName, r.DefaultBranch)
	if errors.Is(err, planner.ErrMoved) { // the branch has no commit yet
		head, err = "", nil
	}
	return sweep.Target{ID: r.ID, Repo: r.FullName, Branch: r.DefaultBranch, Head: head}, err
}

// recordSweep records a sweep as a change.
func (k *Controller) recordSweep(ctx context.Context, repo int64, s sweep.Decision) error {
	id := change.ID{Kind: change.Sweep, Repo: repo, SHA: s.Head}
	news := false
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if news = now.Seq == 0; !news {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: s.Repo, DefaultBranch: s.Branch, Title: s.Branch, Open: true, Head: s.Head, Base: s.Branch, BaseSHA: s.Base, Kernels: s.Kernels,
		}}, nil
	})
	if err == nil && news {
		k.Log.Info("a sweep begins", "repo", s.Repo, "due", s.Due, "head", s.Head, "since", s.Base)
		k.enqueueChange(id)
	}
	return err
}
