package keeper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// look holds what a delivery says of a pull request against GitHub's own word.
// Deliveries come late and out of order, so the newer of the two counts; where
// GitHub does not answer, the delivery is better than nothing.
func (k *Keeper) look(ctx context.Context, id change.ID, told change.Facts) (*change.State, error) {
	asked, err := k.GitHub.Pull(ctx, told.Repo, id.Number)
	switch {
	case err == nil && !asked.UpdatedAt.Before(told.Updated):
		told = facts.OfPull(told.Repo, told.DefaultBranch, asked)
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		k.Log.Warn("GitHub does not tell a pull request; its webhook is believed", "repo", told.Repo, "pull", id.Number, "err", err)
	}
	return k.saw(ctx, id, told)
}

// refresh asks GitHub for a pull request.
func (k *Keeper) refresh(ctx context.Context, id change.ID, repo string) (*change.State, error) {
	p, err := k.GitHub.Pull(ctx, repo, id.Number)
	if err != nil {
		return nil, err
	}
	return k.saw(ctx, id, facts.OfPull(repo, "", p))
}

// saw writes facts down if they are news.
func (k *Keeper) saw(ctx context.Context, id change.ID, f change.Facts) (*change.State, error) {
	f.Labels = slices.Sorted(slices.Values(f.Labels))
	s, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if f.DefaultBranch == "" {
			f.DefaultBranch = now.Facts.DefaultBranch
		}
		f.Rules = now.Facts.Rules // GitHub does not tell them
		older := f.Updated.Before(now.Facts.Updated)
		unheard := now.Seq == 0 && !f.Open // closed before anybody told us of it
		if older || unheard || (now.Seq > 0 && f.Same(now.Facts)) {
			return nil, nil
		}
		return change.Seen{Facts: f}, nil
	})
	k.tender.poke(id)
	return s, err
}

// visit looks at repositories that are new to the App.
func (k *Keeper) visit(ctx context.Context, repos []webhook.Repository) {
	for _, r := range repos {
		if err := k.reconcileRepo(ctx, r.ID, r.FullName); err != nil {
			k.Log.Warn("looking at a new repository failed; it is looked at again soon", "repo", r.FullName, "err", err)
		}
	}
}

// reconcileLoop looks at everything, now and every few minutes: what the bot
// missed, it finds.
func (k *Keeper) reconcileLoop(ctx context.Context) error {
	tick := time.NewTicker(k.Reconcile)
	defer tick.Stop()
	for {
		k.reconcile(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (k *Keeper) reconcile(ctx context.Context) {
	// Deliveries that GitHub failed to bring are kept for three days.
	const kept = 3 * 24 * time.Hour
	ids, err := k.Ledger.Unsettled(ctx)
	if err != nil {
		k.Log.Error("reading the ledger failed", "err", err)
	}
	for _, id := range ids {
		k.tender.poke(id)
	}
	repos, err := k.repositories(ctx)
	if err != nil && ctx.Err() == nil {
		k.Log.Warn("listing repositories failed; they are listed again soon", "err", err)
	}
	for _, r := range repos {
		if err := k.reconcileRepo(ctx, r.ID, r.FullName); err != nil && ctx.Err() == nil {
			k.Log.Warn("looking at a repository failed; it is looked at again soon", "repo", r.FullName, "err", err)
		}
	}
	if k.GitHub.UsesChecks() {
		k.redeliver(ctx, k.Now().Add(-kept))
	}
	k.count(func(c *Counts) { c.Reconciled = k.Now() })
}

// repositories is those to watch. A token cannot list what it was given for, so
// there they are named in the configuration, and known by number once they were
// heard of.
func (k *Keeper) repositories(ctx context.Context) ([]client.Repository, error) {
	all, err := k.GitHub.Repositories(ctx)
	if !errors.Is(err, client.ErrNeedsApp) {
		return slices.DeleteFunc(all, func(r client.Repository) bool { return !k.watched(r.FullName) }), err
	}
	var repos []client.Repository
	for _, name := range k.Repositories {
		r, err := k.GitHub.Repository(ctx, name)
		if err != nil {
			return repos, err
		}
		repos = append(repos, r)
	}
	return repos, nil
}

func (k *Keeper) reconcileRepo(ctx context.Context, number int64, name string) error {
	pulls, err := k.GitHub.OpenPulls(ctx, name)
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, p := range pulls {
		open[p.Number] = true
		if _, err := k.saw(ctx, change.ID{Kind: change.Pull, Repo: number, Number: p.Number}, facts.OfPull(name, "", p)); err != nil {
			return err
		}
	}
	known, err := k.Ledger.OpenPulls(ctx, number)
	if err != nil {
		return err
	}
	for _, pull := range known {
		if open[pull.Number] {
			continue
		}
		if _, err := k.refresh(ctx, pull.ID, name); err != nil {
			return err
		}
	}
	bases := map[string]bool{}
	for _, pull := range known {
		if open[pull.Number] && !bases[pull.Base] {
			bases[pull.Base] = true
			if err := k.rulesOf(ctx, name, pull.Base, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxRedeliveries is how often one delivery is asked for: what the bot's own
// address refuses each time will not come in for being asked again.
const maxRedeliveries = 3

// redeliver asks GitHub for what it could not deliver; it never does so by
// itself.
func (k *Keeper) redeliver(ctx context.Context, since time.Time) {
	failed, err := k.GitHub.FailedDeliveries(ctx, since)
	if err != nil && ctx.Err() == nil {
		k.Log.Warn("listing failed deliveries failed", "err", err)
	}
	for _, d := range failed {
		if k.redelivered[d.GUID]++; k.redelivered[d.GUID] > maxRedeliveries {
			continue
		}
		if err := k.GitHub.Redeliver(ctx, d.ID); err != nil && ctx.Err() == nil {
			k.Log.Warn("asking for a redelivery failed", "delivery", d.GUID, "err", err)
		}
	}
}
