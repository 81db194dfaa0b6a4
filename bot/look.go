package bot

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/hub"
	"github.com/kernelgate/kernelgate/bot/webhook"
)

// look holds what a delivery says of a pull request against GitHub's own word.
// Deliveries come late and out of order, so the newer of the two counts; where
// GitHub does not answer, the delivery is better than nothing.
func (b *Bot) look(ctx context.Context, id change.ID, told change.Facts) (*change.State, error) {
	asked, err := b.Hub.Pull(ctx, told.Repo, id.Number)
	switch {
	case err == nil && !asked.UpdatedAt.Before(told.Updated):
		told = facts.OfPull(told.Repo, told.DefaultBranch, asked)
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		b.Log.Warn("GitHub does not tell a pull request; its webhook is believed", "repo", told.Repo, "pull", id.Number, "err", err)
	}
	return b.saw(ctx, id, told)
}

// refresh asks GitHub for a pull request.
func (b *Bot) refresh(ctx context.Context, id change.ID, repo string) (*change.State, error) {
	p, err := b.Hub.Pull(ctx, repo, id.Number)
	if err != nil {
		return nil, err
	}
	return b.saw(ctx, id, facts.OfPull(repo, "", p))
}

// saw writes facts down if they are news.
func (b *Bot) saw(ctx context.Context, id change.ID, f change.Facts) (*change.State, error) {
	f.Labels = slices.Sorted(slices.Values(f.Labels))
	s, err := b.states.update(ctx, id, func(now *change.State) (change.Event, error) {
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
	b.tender.poke(id)
	return s, err
}

// visit looks at repositories that are new to the App.
func (b *Bot) visit(ctx context.Context, repos []webhook.Repository) {
	for _, r := range repos {
		if err := b.reconcileRepo(ctx, r.ID, r.FullName); err != nil {
			b.Log.Warn("looking at a new repository failed; it is looked at again soon", "repo", r.FullName, "err", err)
		}
	}
}

// reconcileLoop looks at everything, now and every few minutes: what the bot
// missed, it finds.
func (b *Bot) reconcileLoop(ctx context.Context) error {
	tick := time.NewTicker(b.Reconcile)
	defer tick.Stop()
	for {
		b.reconcile(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (b *Bot) reconcile(ctx context.Context) {
	// Deliveries that GitHub failed to bring are kept for three days.
	const kept = 3 * 24 * time.Hour
	ids, err := b.Ledger.Unsettled(ctx)
	if err != nil {
		b.Log.Error("reading the ledger failed", "err", err)
	}
	for _, id := range ids {
		b.tender.poke(id)
	}
	repos, err := b.repositories(ctx)
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("listing repositories failed; they are listed again soon", "err", err)
	}
	for _, r := range repos {
		if err := b.reconcileRepo(ctx, r.ID, r.FullName); err != nil && ctx.Err() == nil {
			b.Log.Warn("looking at a repository failed; it is looked at again soon", "repo", r.FullName, "err", err)
		}
	}
	if b.Hub.UsesChecks() {
		b.redeliver(ctx, b.Now().Add(-kept))
	}
	b.count(func(c *Counts) { c.Reconciled = b.Now() })
}

// repositories is those to watch. A token cannot list what it was given for, so
// there they are named in the configuration, and known by number once they were
// heard of.
func (b *Bot) repositories(ctx context.Context) ([]hub.Repository, error) {
	all, err := b.Hub.Repositories(ctx)
	if !errors.Is(err, hub.ErrNeedsApp) {
		return slices.DeleteFunc(all, func(r hub.Repository) bool { return !b.watched(r.FullName) }), err
	}
	var repos []hub.Repository
	for _, name := range b.Repositories {
		r, err := b.Hub.Repository(ctx, name)
		if err != nil {
			return repos, err
		}
		repos = append(repos, r)
	}
	return repos, nil
}

func (b *Bot) reconcileRepo(ctx context.Context, number int64, name string) error {
	pulls, err := b.Hub.OpenPulls(ctx, name)
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, p := range pulls {
		open[p.Number] = true
		if _, err := b.saw(ctx, change.ID{Kind: change.Pull, Repo: number, Number: p.Number}, facts.OfPull(name, "", p)); err != nil {
			return err
		}
	}
	known, err := b.Ledger.OpenPulls(ctx, number)
	if err != nil {
		return err
	}
	for _, k := range known {
		if open[k.Number] {
			continue
		}
		if _, err := b.refresh(ctx, k.ID, name); err != nil {
			return err
		}
	}
	bases := map[string]bool{}
	for _, k := range known {
		if open[k.Number] && !bases[k.Base] {
			bases[k.Base] = true
			if err := b.rulesOf(ctx, name, k.Base, known); err != nil {
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
func (b *Bot) redeliver(ctx context.Context, since time.Time) {
	failed, err := b.Hub.FailedDeliveries(ctx, since)
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("listing failed deliveries failed", "err", err)
	}
	for _, d := range failed {
		if b.redelivered[d.GUID]++; b.redelivered[d.GUID] > maxRedeliveries {
			continue
		}
		if err := b.Hub.Redeliver(ctx, d.ID); err != nil && ctx.Err() == nil {
			b.Log.Warn("asking for a redelivery failed", "delivery", d.GUID, "err", err)
		}
	}
}
