package keeper

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

func (k *Keeper) watched(repo string) bool {
	return len(k.Repositories) == 0 || slices.ContainsFunc(k.Repositories, func(r string) bool { return strings.EqualFold(r, repo) })
}

// nameOf is what a watched repository is called now; empty where nobody has told.
func (k *Keeper) nameOf(repo int64) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[repo]
}

// meet tells whether the repository of a delivery is watched. A delivery may be late, so
// a name that is known is believed more.
func (k *Keeper) meet(r webhook.Repository) bool {
	if k.nameOf(r.ID) == "" && !k.watched(r.FullName) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names[r.ID] == "" {
		k.names[r.ID] = r.FullName
	}
	return true
}

// called notes the name that a repository has now, by GitHub's own word.
func (k *Keeper) called(repo int64, name string) {
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

func (k *Keeper) noteRepository(ctx context.Context, e webhook.RepositoryChange) error {
	r := e.Repository
	if k.nameOf(r.ID) == "" && !k.watched(r.FullName) && !k.watched(e.FullNameWas) {
		return nil
	}
	switch e.Action {
	case "renamed", "transferred":
		k.called(r.ID, r.FullName)
		k.came([]webhook.Repository{r})
	case "unarchived":
		k.came([]webhook.Repository{r})
	case "archived":
		k.goneAway(r.ID, r.FullName, errors.New("it is archived"))
	case "deleted":
		return k.left(ctx, []webhook.Repository{r}, "it was deleted")
	}
	return nil
}

func (k *Keeper) noteInstallation(ctx context.Context, e webhook.Installation) error {
	switch e.Action {
	case "deleted":
		return k.left(ctx, e.Repositories, "the App was uninstalled")
	case "suspend":
		for _, r := range k.ofAccount(e.Account.Login) {
			k.goneAway(r.ID, r.FullName, errors.New("the App is suspended there"))
		}
	default: // GitHub lists the repositories with the first word of an installation alone
		k.came(append(k.ofAccount(e.Account.Login), e.Repositories...))
	}
	return nil
}

// noteAccount gives the repositories of an account their new names.
func (k *Keeper) noteAccount(e webhook.InstallationTarget) {
	for _, r := range k.ofAccount(e.LoginWas) {
		k.called(r.ID, e.Account.Login+"/"+r.Name())
		k.came([]webhook.Repository{r})
	}
}

// ofAccount is the repositories that are known in an account.
func (k *Keeper) ofAccount(login string) []webhook.Repository {
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

// came has repositories looked through that take part, perhaps again.
func (k *Keeper) came(repos []webhook.Repository) {
	for _, r := range repos {
		if k.meet(r) {
			k.cameBack(r.ID)
			k.looking.wake(place{repo: r.ID, name: k.nameOf(r.ID)})
		}
	}
}

// left ends what is open in repositories that nobody can reach any more: no job of
// theirs is measured, and nothing is left to tell. If they come back, everything that is
// open then begins anew.
func (k *Keeper) left(ctx context.Context, repos []webhook.Repository, why string) error {
	for _, r := range repos {
		if !k.meet(r) {
			continue
		}
		k.goneAway(r.ID, r.FullName, errors.New(why))
		k.mu.Lock()
		k.away[r.ID] = why
		k.mu.Unlock()
		pulls, err := k.Ledger.OpenPulls(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, p := range pulls {
			if err := k.end(ctx, p.ID, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// endLate ends what was told of a repository after its end: a look that was under way, or a delivery that was late.
func (k *Keeper) endLate(ctx context.Context, s *change.State) error {
	k.mu.Lock()
	why := k.away[s.ID.Repo]
	k.mu.Unlock()
	if why == "" || s.Settled() {
		return nil
	}
	return k.end(ctx, s.ID, why)
}

func (k *Keeper) end(ctx context.Context, id change.ID, why string) error {
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		f := now.Facts
		if f.Open, f.Ended = false, why; now.Facts.Same(f) {
			return nil, nil
		}
		return change.Seen{Facts: f}, nil
	})
	if err == nil && len(s.Dropping) > 0 {
		err = k.drop(ctx, s)
	}
	if err != nil {
		return err
	}
	_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if !now.Dirty {
			return nil, nil
		}
		return change.Published{Complete: true}, nil
	})
	k.Log.Info("a change has come to its end", "change", id.String(), "repo", s.Facts.Repo, "why", why)
	return err
}
