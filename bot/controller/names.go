package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Numbers identify repositories. A name that becomes free after a rename, a transfer or a deletion may go to a repository with
// different readers, so the bot writes into the journal what became of a repository, and asks GitHub by number.

// rename uses a new name for a repository from now on, and tells the pages. It was asked for at that moment.
func (k *Controller) rename(ctx context.Context, id int64, name string, asked repos.Moment) error {
	k.repos.Rename(id, name)
	return k.recordName(ctx, id, name, asked)
}

// recordName writes into the journal that GitHub has this name for a repository, by an answer to a question of that moment, if the
// pages would show something else. An answer is no news of a repository that ended after the question.
func (k *Controller) recordName(ctx context.Context, id int64, name string, asked repos.Moment) error {
	shown, err := k.Ledger.RepoName(ctx, id)
	if ledger.IsNotFound(err) || err == nil && shown.Name == name && shown.Removed == "" {
		return nil // a repository without changes has no pages
	}
	if err != nil {
		return fmt.Errorf("asking the ledger for the name of repository %d: %w", id, err)
	}
	old := func() bool { return k.repos.EndedSince(id, asked) }
	written, err := k.recordRepositoryEvent(ctx, repos.Subject(id), repos.Named{Repo: id, Name: name}, old)
	if written {
		k.Log.Info("the pages show a repository under its name of today", "repo", name, "id", id, "was", shown.Name)
	}
	return err
}

// recordRemoved writes into the journal that the bot cannot reach a repository any more. Only the token of the pages opens
// its pages from then on. What GitHub said takes the place of what the bot concluded.
func (k *Controller) recordRemoved(ctx context.Context, id int64, why string) error {
	shown, err := k.Ledger.RepoName(ctx, id)
	if ledger.IsNotFound(err) || err == nil && shown.Removed != "" && !change.EndReason(why).Known() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking the ledger for the name of repository %d: %w", id, err)
	}
	written, err := k.recordRepositoryEvent(ctx, repos.Subject(id), repos.Removed{Repo: id, Why: why}, nil)
	if written {
		k.Log.Info("the pages of a repository are closed: only the token opens them", "repo", shown.Name, "id", id, "why", why)
	}
	return err
}

// recordRepositoryEvent writes an event, unless it is the last one of its subject (the ledger may lag behind) or has become old
// meanwhile. It reports whether it has written.
func (k *Controller) recordRepositoryEvent(ctx context.Context, subject string, e repos.Event, old func() bool) (bool, error) {
	for {
		last, seq, err := k.lastOfRepository(ctx, subject)
		if err != nil || last == e || old != nil && old() {
			return false, err
		}
		_, err = k.Journal.AppendAt(ctx, k.Now().UTC().Round(0), subject, seq, repos.KindOf(e), e)
		if errors.Is(err, journal.ErrConflict) {
			continue // another worker has written
		}
		if err != nil {
			return false, fmt.Errorf("writing what became of a repository: %w", err)
		}
		return true, nil
	}
}

func (k *Controller) lastOfRepository(ctx context.Context, subject string) (repos.Event, uint64, error) {
	stored, err := k.Journal.Last(ctx, subject)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading what became of a repository: %w", err)
	}
	last, err := repos.Decode(stored.Writer, stored.Kind, stored.Data)
	return last, stored.Seq, err
}

// confirmName asks GitHub whether a repository still has the name that the journal has, before the bot uses the name for the
// first time since its start. A repository whose name belongs to a different one is skipped until GitHub lists it.
func (k *Controller) confirmName(ctx context.Context, s *change.State) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked := k.repos.Moment()
	r, err := k.GitHub.Repository(ctx, s.Facts.Repo)
	if client.NotFound(err) {
		err = fmt.Errorf("%w: %w", client.ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	if r.ID != s.ID.Repo {
		return otherRepository(s.Facts.Repo, r.ID)
	}
	k.repos.Confirm(r.ID, r.FullName)
	if k.repos.Gone(r.ID) {
		return nil // GitHub shows public repositories also where the App is not installed
	}
	return k.recordName(ctx, r.ID, r.FullName, asked)
}

// otherRepository says that a name leads to a different repository now. Work on the one that was meant waits until GitHub
// lists it.
func otherRepository(name string, id int64) error {
	return fmt.Errorf("%w: the name %s belongs to repository %d now", client.ErrUnavailable, name, id)
}

// people answers for the roles of users in one repository, by its number.
type people struct {
	*client.GitHub
	repo int64
}

// Permission returns a user's role.
func (p people) Permission(ctx context.Context, name, login string) (policy.Role, error) {
	has, _, err := p.PermissionByID(ctx, p.repo, name, login)
	return has, err
}

// recordPublic binds a name of the configuration's public pages to the repository that has it now, once. A different
// repository with that name later is not what the operator meant.
func (k *Controller) recordPublic(ctx context.Context, id int64, name string) error {
	if !slices.ContainsFunc(k.Public, func(declared string) bool { return strings.EqualFold(declared, name) }) {
		return nil
	}
	name = strings.ToLower(name)
	last, _, err := k.lastOfRepository(ctx, repos.PublicSubject(name))
	if err != nil {
		return err
	}
	bound, ok := last.(repos.MadePublic)
	switch {
	case !ok:
		k.Log.Info("the pages of a repository are public", "repo", name, "id", id)
		_, err := k.recordRepositoryEvent(ctx, repos.PublicSubject(name), repos.MadePublic{Repo: id, Name: name}, nil)
		return err
	case bound.Repo != id:
		k.Log.Warn(fmt.Sprintf("pages.public names a repository that has a different number now, so its pages are not public: write %s@%d if you mean this one", name, id), "repo", name, "id", id, "was", bound.Repo)
	}
	return nil
}

// withdrawPublic unbinds the names that the configuration does not have any more.
func (k *Controller) withdrawPublic(ctx context.Context) error {
	bound, err := k.Ledger.Public(ctx)
	if err != nil {
		return err
	}
	for _, p := range bound {
		if slices.ContainsFunc(k.Public, func(declared string) bool { return strings.EqualFold(declared, p.Name) }) {
			continue
		}
		if _, err := k.recordRepositoryEvent(ctx, repos.PublicSubject(p.Name), repos.MadePrivate{Name: p.Name}, nil); err != nil {
			return err
		}
	}
	return nil
}

// removeUnlisted records that repositories are gone which GitHub has not listed twice in a row, although it listed every
// installation: the delivery that says so may have been lost. One list alone may be older than an installation. Their changes stay
// open, because a suspended installation is not listed either, and work waits for its end.
func (k *Controller) removeUnlisted(ctx context.Context, p *pass) error {
	if !k.GitHub.ListsAll() {
		return nil // the token sees repositories that nobody lists
	}
	known, err := k.Ledger.RepoNames(ctx)
	if err != nil {
		return fmt.Errorf("asking the ledger for the repositories: %w", err)
	}
	before := k.unlisted
	k.unlisted = map[int64]bool{}
	for _, r := range known {
		if _, listed := p.seen.Load(r.ID); listed || r.Removed != "" {
			continue
		}
		k.unlisted[r.ID] = true
		if before[r.ID] {
			err = errors.Join(err, k.recordRemoved(ctx, r.ID, "GitHub does not list it among the App's repositories"))
		}
	}
	return err
}

// restoreEnds reads which repositories had ended before this bot led.
func (k *Controller) restoreEnds(ctx context.Context) error {
	known, err := k.Ledger.RepoNames(ctx)
	if err != nil {
		return fmt.Errorf("asking the ledger which repositories have ended: %w", err)
	}
	for _, r := range known {
		if change.EndReason(r.Removed).Known() {
			k.repos.End(r.ID, r.Removed)
		}
	}
	return nil
}
