package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// A repository is known by its number. It may get another name or another owner, be
// shut, or go; the App may leave it. What is under way there goes on by the new name,
// waits, or ends.

func (k *Controller) watched(repo string) bool {
	return len(k.Repositories) == 0 || slices.ContainsFunc(k.Repositories, func(r string) bool { return strings.EqualFold(r, repo) })
}

// repositoryName is what a watched repository is called now; empty where nobody has told.
func (k *Controller) repositoryName(repo int64) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[repo]
}

// observe tells whether the repository of a delivery is watched. A delivery may be late, so
// a name that is known is believed more.
func (k *Controller) observe(r webhook.Repository) bool {
	if k.repositoryName(r.ID) == "" && !k.watched(r.FullName) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names[r.ID] == "" {
		k.names[r.ID] = r.FullName
	}
	return true
}

// recordName notes the name that a repository has now, by GitHub's own word.
func (k *Controller) recordName(repo int64, name string) {
	k.mu.Lock()
	was := k.names[repo]
	k.names[repo] = name
	k.mu.Unlock()
	if was == "" || was == name {
		return
	}
	k.Log.Info("a repository has another name", "repo", name, "was", was)
	if k.watched(was) && !k.watched(name) {
		k.Log.Warn("the configuration's repositories has a name that is gone: change it before the next start", "repo", name, "was", was)
	}
}

func (k *Controller) recordRepository(ctx context.Context, e webhook.RepositoryChange) error {
	r := e.Repository
	if k.repositoryName(r.ID) == "" && !k.watched(r.FullName) && !k.watched(e.FullNameWas) {
		return nil
	}
	switch e.Action {
	case "renamed", "transferred":
		k.recordName(r.ID, r.FullName)
		k.addRepositories([]webhook.Repository{r})
	case "unarchived":
		k.addRepositories([]webhook.Repository{r})
	case "archived":
		k.suspend(r.ID, r.FullName, errors.New("it is archived"))
	case "deleted":
		return k.removeRepositories(ctx, []webhook.Repository{r}, "it was deleted")
	}
	return nil
}

func (k *Controller) recordInstallation(ctx context.Context, e webhook.Installation) error {
	switch e.Action {
	case "deleted":
		return k.removeRepositories(ctx, e.Repositories, "the App was uninstalled")
	case "suspend":
		for _, r := range k.repositoriesOf(e.Account.Login) {
			k.suspend(r.ID, r.FullName, errors.New("the App is suspended there"))
		}
	default: // GitHub lists the repositories with the first word of an installation alone
		k.addRepositories(append(k.repositoriesOf(e.Account.Login), e.Repositories...))
	}
	return nil
}

// recordAccount gives the repositories of an account their new names.
func (k *Controller) recordAccount(e webhook.InstallationTarget) {
	for _, r := range k.repositoriesOf(e.LoginWas) {
		k.recordName(r.ID, e.Account.Login+"/"+r.Name())
		k.addRepositories([]webhook.Repository{r})
	}
}

// repositoriesOf is the repositories that are known in an account.
func (k *Controller) repositoriesOf(login string) []webhook.Repository {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []webhook.Repository
	for id, name := range k.names {
		if r := (webhook.Repository{ID: id, FullName: name}); strings.EqualFold(r.Owner(), login) {
			all = append(all, r)
		}
	}
	return all
}

// addRepositories has repositories looked through that take part, perhaps again.
func (k *Controller) addRepositories(repos []webhook.Repository) {
	for _, r := range repos {
		if k.observe(r) {
			k.resume(r.ID)
			k.resyncQueue.add(resyncTarget{repo: r.ID, name: k.repositoryName(r.ID)})
		}
	}
}

// removeRepositories ends what is open in repositories that nobody can reach any more: no job of
// theirs is measured, and nothing is left to tell. If they come back, everything that is
// open then begins anew.
func (k *Controller) removeRepositories(ctx context.Context, repos []webhook.Repository, why string) error {
	for _, r := range repos {
		if !k.observe(r) {
			continue
		}
		k.suspend(r.ID, r.FullName, errors.New(why))
		k.mu.Lock()
		k.suspended[r.ID] = why
		k.mu.Unlock()
		pulls, err := k.Ledger.OpenPulls(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, p := range pulls {
			if err := k.endChange(ctx, p.ID, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// endIfRemoved ends what was told of a repository after its end: a look that was under way, or a delivery that was late.
func (k *Controller) endIfRemoved(ctx context.Context, s *change.State) error {
	k.mu.Lock()
	why := k.suspended[s.ID.Repo]
	k.mu.Unlock()
	if why == "" || s.Settled() {
		return nil
	}
	return k.endChange(ctx, s.ID, why)
}

func (k *Controller) endChange(ctx context.Context, id change.ID, why string) error {
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
