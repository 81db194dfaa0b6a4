package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

func (k *Controller) recordRepository(ctx context.Context, e webhook.RepositoryChange) error {
	r := e.Repository
	if !k.repos.Known(r) && !k.repos.Watches(e.FullNameWas) {
		return nil
	}
	switch e.Action {
	case "renamed", "transferred":
		return k.renameRepository(ctx, r, r.FullName)
	case "unarchived":
		k.addRepositories([]webhook.Repository{r})
	case "archived":
		k.repos.Suspend(r.ID, r.FullName, errors.New("it is archived"))
	case "deleted":
		return k.removeRepositories(ctx, []webhook.Repository{r}, change.RepositoryDeleted)
	}
	return nil
}

func (k *Controller) recordInstallation(ctx context.Context, e webhook.Installation) error {
	switch e.Action {
	case "deleted":
		return k.removeRepositories(ctx, e.Repositories, change.AppUninstalled)
	case "suspend":
		for _, r := range k.repos.Of(e.Account.Login) {
			k.repos.Suspend(r.ID, r.FullName, errors.New("the App is suspended there"))
		}
	default: // GitHub lists the repositories only when an installation is created
		k.addRepositories(append(k.repos.Of(e.Account.Login), e.Repositories...))
	}
	return nil
}

// recordAccount gives the repositories of an account their new names.
func (k *Controller) recordAccount(ctx context.Context, e webhook.InstallationTarget) error {
	for _, r := range k.repos.Of(e.LoginWas) {
		if err := k.renameRepository(ctx, r, e.Account.Login+"/"+r.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (k *Controller) renameRepository(ctx context.Context, r webhook.Repository, name string) error {
	if asked := k.repos.Moment(); !k.repos.Gone(r.ID) {
		if err := k.rename(ctx, r.ID, name, asked); err != nil {
			return err
		}
	}
	r.FullName = name
	k.addRepositories([]webhook.Repository{r})
	return nil
}

// addRepositories resumes repositories that are watched, and resyncs them. The resync first asks about those that had ended.
func (k *Controller) addRepositories(repos []webhook.Repository) {
	for _, r := range repos {
		if k.repos.Observe(r) {
			k.repos.Revive(r.ID, r.FullName)
			k.resyncQueue.add(resyncTarget{repo: r.ID, name: k.repos.Name(r.ID)})
		}
	}
}

// removeRepositories ends the open changes of repositories that nobody can reach any more: their
// jobs are cancelled, and nothing more is published. If a repository comes back, the resync starts
// whatever is open then from the beginning.
func (k *Controller) removeRepositories(ctx context.Context, repos []webhook.Repository, why change.EndReason) error {
	for _, r := range repos {
		if !k.repos.Observe(r) {
			continue
		}
		if err := k.removeRepository(ctx, r.ID, r.FullName, why); err != nil {
			return err
		}
	}
	return nil
}

func (k *Controller) removeRepository(ctx context.Context, id int64, name string, why change.EndReason) error {
	k.repos.Suspend(id, name, errors.New(string(why)))
	k.repos.End(id, string(why))
	if err := k.recordRemoved(ctx, id, string(why)); err != nil {
		return err
	}
	pulls, err := k.Ledger.OpenPulls(ctx, id)
	if err != nil {
		return err
	}
	for _, p := range pulls {
		if err := k.endChange(ctx, p.ID, why); err != nil {
			return err
		}
	}
	// A pause after a failure can take an hour, and nothing is left to wait for.
	k.resyncQueue.endPauses(func(t resyncTarget) bool { return t.repo == id })
	k.reconcileQueue.endPauses(func(c change.ID) bool { return c.Repo == id })
	k.publishQueue.endPauses(func(c change.ID) bool { return c.Repo == id })
	return nil
}

// A repository that a delivery has brought back ends again after so many answers that it is not there, with pauses between them:
// GitHub's replicas lag.
const (
	deniedEnough = 2
	deniedPause  = 2 * time.Second
)

// settleDoubt asks GitHub about a repository that had ended and that a delivery has brought back: the delivery may be late.
func (k *Controller) settleDoubt(ctx context.Context, id int64, name string) error {
	asked := k.repos.Moment()
	found, err := k.GitHub.Reaches(ctx, name, id)
	if err != nil {
		return fmt.Errorf("asking whether %s is there: %w", name, err)
	}
	if found != "" {
		if k.repos.Resume(id, asked) {
			err = k.rename(ctx, id, found, asked)
		}
		return err
	}
	why, denials := k.repos.Deny(id)
	switch {
	case denials >= deniedEnough:
		return k.removeRepository(ctx, id, name, change.EndReason(why))
	case denials > 0:
		return requeueAt(k.Now().Add(deniedPause))
	}
	return nil
}

// endIfRemoved ends a change that was recorded after its repository had ended, by a resync that was running or by a late delivery.
func (k *Controller) endIfRemoved(ctx context.Context, s *change.State) error {
	why := change.EndReason(k.repos.Ended(s.ID.Repo))
	if why == "" || s.Settled() {
		return nil
	}
	return k.endChange(ctx, s.ID, why)
}

func (k *Controller) endChange(ctx context.Context, id change.ID, why change.EndReason) error {
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		f := now.Facts
		if f.Open, f.Ended = false, why; now.Facts.Same(f) {
			return nil, nil
		}
		return change.Seen{Facts: f}, nil
	})
	if err == nil && len(s.Dropping) > 0 {
		err = k.cancelJobs(ctx, s)
	}
	if err != nil {
		return err
	}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if !now.NeedsPublish {
			return nil, nil
		}
		return change.Published{Complete: true}, nil
	})
	k.Log.Info("a change has come to its end", "change", id.String(), "repo", s.Facts.Repo, "why", why)
	return err
}
