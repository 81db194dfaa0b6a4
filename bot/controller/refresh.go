package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// Deliveries may come late and out of order, and several may have the same second. So the bot asks
// GitHub before it acts on one, and uses the newer of the two.

// markStale marks a pull request for a refresh. If GitHub does not answer, told is used.
func (k *Controller) markStale(id change.ID, told change.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stale[id] = told
}

func (k *Controller) isStale(id change.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.stale[id]
	return ok
}

// refreshStale asks GitHub for a pull request that a delivery named. If GitHub does not answer, the
// bot uses the delivery.
func (k *Controller) refreshStale(ctx context.Context, s *change.State) error {
	k.mu.Lock()
	told := k.stale[s.ID]
	delete(k.stale, s.ID) // first, so that a new delivery marks it again
	k.mu.Unlock()
	after, err := k.refresh(ctx, s.ID, s.Facts.Repo)
	if err == nil {
		k.recordConflict(s.ID, told, after.Facts)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, client.ErrUnavailable) {
		return err
	}
	k.Log.Warn("GitHub does not return the pull request; the bot uses its webhook", "repo", s.Facts.Repo, "pull", s.ID.Number, "err", err)
	_, _, err = k.recordFacts(ctx, s.ID, told)
	return err
}

// fetchUnknown asks GitHub for a pull request that the bot knows only from a comment.
func (k *Controller) fetchUnknown(ctx context.Context, s *change.State) error {
	if !s.Facts.Open {
		return nil
	}
	_, err := k.refresh(ctx, s.ID, s.Facts.Repo)
	if !client.NotFound(err) {
		return err
	}
	if k.Now().Sub(s.First) < lagTime {
		return fmt.Errorf("%w: %w", publish.ErrNotVisible, err)
	}
	_, err = k.states.update(ctx, s.ID, func(now *change.State) (change.Event, error) {
		return change.Seen{Facts: change.Facts{Repo: now.Facts.Repo}}, nil
	})
	return err
}

// refresh asks GitHub for a pull request.
func (k *Controller) refresh(ctx context.Context, id change.ID, repo string) (*change.State, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := k.GitHub.Pull(ctx, repo, id.Number)
	if err == nil && p.Shut {
		err = client.ErrUnavailable
	}
	if err == nil && p.BaseID != id.Repo {
		err = otherRepository(repo, p.BaseID)
	}
	if err != nil {
		return nil, err
	}
	s, _, err := k.recordFacts(ctx, id, observed.OfPull(repo, "", p))
	return s, err
}

// recordFacts records facts if they are new, and reports whether they were.
func (k *Controller) recordFacts(ctx context.Context, id change.ID, f change.Facts) (*change.State, bool, error) {
	f.Labels = slices.Sorted(slices.Values(f.Labels))
	news := false
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		f.DefaultBranch = cmp.Or(f.DefaultBranch, now.Facts.DefaultBranch)
		f.Rules = now.Facts.Rules                                                               // GitHub's answer does not have them
		f.BaseGone = now.Facts.BaseGone && now.Facts.Base == f.Base && now.Facts.Open && f.Open // nor this
		older := f.Updated.Before(now.Facts.Updated)
		unheard := now.Seq == 0 && !f.Open // closed before the bot heard of it
		if news = !older && !unheard && (now.Seq == 0 || !f.Same(now.Facts)); !news {
			return nil, nil
		}
		return change.Seen{Facts: f}, nil
	})
	return s, news, err
}
