package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/facts"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A place is what a look is taken at: a repository or, of the rules alone, one of its
// branches.
type place struct {
	repo   int64
	name   string
	branch string
}

func (p place) String() string {
	if p.branch == "" {
		return p.name
	}
	return p.name + "@" + p.branch
}

func (k *Keeper) laneAt(_ context.Context, p place) (lane, error) {
	return lane{account: k.GitHub.Account(p.name)}, nil
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

// How many installations are asked for their repositories at once, and for how long.
const (
	listAtOnce = 32
	listTime   = time.Minute
)

func (k *Keeper) reconcile(ctx context.Context) {
	var p pass
	ids, err := k.Ledger.Unsettled(ctx)
	if err != nil {
		p.missed(err)
		k.Log.Error("reading the ledger failed", "err", err)
	}
	for _, id := range ids {
		k.working.remind(id)
	}
	var all sync.WaitGroup
	if k.GitHub.UsesChecks() {
		all.Go(func() { p.missed(k.redeliverer.pass(ctx)) })
	}
	atOnce := make(chan struct{}, listAtOnce)
	lists, err := k.lists(ctx)
	p.missed(err)
	for _, list := range lists {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			listing, cancel := context.WithTimeout(ctx, listTime)
			defer cancel()
			repos, err := list(listing)
			if p.listed(err); err != nil && ctx.Err() == nil {
				k.Log.Warn("listing repositories failed; they are listed again soon", "err", err)
			}
			for _, r := range repos {
				k.found(r)
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil && p.complete(len(lists)) {
		k.count(func(c *Counts) { c.Reconciled = k.Now() })
	}
}

// A pass is one reconciliation: what was listed and what was missed.
type pass struct {
	lists, misses atomic.Int64
}

// missed notes a question that got no answer. A refusal is an answer: GitHub does not give
// another one until people change something there.
func (p *pass) missed(err error) {
	if err != nil && !client.Final(err) {
		p.misses.Add(1)
	}
}

func (p *pass) listed(err error) {
	if p.missed(err); err == nil {
		p.lists.Add(1)
	}
}

// complete tells whether everything was looked at. Where GitHub refuses every list, nothing was.
func (p *pass) complete(lists int) bool {
	return p.misses.Load() == 0 && (p.lists.Load() > 0 || lists == 0)
}

// lists is the questions that lead to all repositories to watch, one an installation. A
// token cannot list what it was given for, so there they are named in the configuration.
func (k *Keeper) lists(ctx context.Context) ([]func(context.Context) ([]client.Repository, error), error) {
	var out []func(context.Context) ([]client.Repository, error)
	listing, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	ids, err := k.GitHub.Installations(listing)
	if errors.Is(err, client.ErrNeedsApp) {
		for _, name := range k.Repositories {
			out = append(out, func(ctx context.Context) ([]client.Repository, error) {
				r, err := k.GitHub.Repository(ctx, name)
				if err != nil {
					return nil, err
				}
				k.called(r.ID, r.FullName) // which need not be the one that it was asked for by
				return []client.Repository{r}, nil
			})
		}
		return out, nil
	}
	if err != nil && ctx.Err() == nil {
		k.Log.Warn("listing the installations failed; they are listed again soon", "err", err)
	}
	for _, id := range ids {
		out = append(out, func(ctx context.Context) ([]client.Repository, error) { return k.GitHub.Repositories(ctx, id) })
	}
	return out, err
}

// found has a repository looked through, unless it takes no part.
func (k *Keeper) found(r client.Repository) {
	if k.nameOf(r.ID) != "" || k.watched(r.FullName) {
		k.called(r.ID, r.FullName)
	}
	switch {
	case k.nameOf(r.ID) == "" && !k.watched(r.FullName):
	case r.Archived || r.Disabled:
		k.goneAway(r.ID, r.FullName, errors.New("it is archived or disabled"))
	default:
		k.cameBack(r.ID)
		k.looking.remind(place{repo: r.ID, name: r.FullName})
	}
}

// goneAway leaves a repository alone until GitHub lists it again as one that takes part.
func (k *Keeper) goneAway(repo int64, name string, why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, away := k.away[repo]; !away {
		k.away[repo] = ""
		k.Log.Info("a repository is left alone until that changes", "repo", name, "why", why)
	}
}

func (k *Keeper) cameBack(repo int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.away, repo)
}

func (k *Keeper) isAway(repo int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, away := k.away[repo]
	return away
}

// look compares a repository with what is known of it. It may have got another name, or
// have gone, since somebody asked for that: by the old name it would fail for ever.
func (k *Keeper) look(ctx context.Context, p place) error {
	if k.isAway(p.repo) {
		return nil
	}
	p.name = cmp.Or(k.nameOf(p.repo), p.name)
	var err error
	if p.branch != "" {
		err = k.lookAtRules(ctx, p)
	} else {
		err = k.lookAtPulls(ctx, p)
	}
	if errors.Is(err, client.ErrAway) || client.NotFound(err) {
		k.goneAway(p.repo, p.name, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", p, err)
	}
	return nil
}

func (k *Keeper) lookAtRules(ctx context.Context, p place) error {
	pulls, err := k.Ledger.OpenPulls(ctx, p.repo)
	if err != nil {
		return err
	}
	tip, asked, err := k.rulesOf(ctx, p.name, p.branch, pulls)
	if err != nil {
		return err
	}
	if !asked { // no pull request goes to it
		k.forgetPush(p)
	} else if due, old := k.fetched(p, tip); old {
		return later(due)
	}
	return nil
}

func (k *Keeper) lookAtPulls(ctx context.Context, p place) error {
	pulls, err := k.GitHub.OpenPulls(ctx, p.name)
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, pull := range pulls {
		if pull.Shut {
			return client.ErrAway // before any of them costs a write
		}
		open[pull.Number] = true
	}
	if err := k.notePulls(ctx, p, pulls); err != nil {
		return err
	}
	known, err := k.Ledger.OpenPulls(ctx, p.repo)
	if err != nil {
		return err
	}
	bases := map[string]bool{}
	for _, pull := range known {
		if !open[pull.ID.Number] {
			if _, err := k.refresh(ctx, pull.ID, p.name); err != nil && !client.NotFound(err) {
				return err
			}
			k.wake(pull.ID)
		} else if pull.Base != "" && !bases[pull.Base] {
			bases[pull.Base] = true
			if _, _, err := k.rulesOf(ctx, p.name, pull.Base, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteAtOnce is how many pull requests are noted at the same time: the journal writes
// them to the disk together.
const noteAtOnce = 64

// notePulls notes what GitHub tells of pull requests, and has all of them worked on.
func (k *Keeper) notePulls(ctx context.Context, p place, pulls []client.Pull) error {
	var all sync.WaitGroup
	errs, atOnce := make([]error, len(pulls)), make(chan struct{}, noteAtOnce)
	for i, pull := range pulls {
		atOnce <- struct{}{}
		all.Go(func() {
			defer func() { <-atOnce }()
			id := change.ID{Kind: change.Pull, Repo: p.repo, Number: pull.Number}
			f := facts.OfPull(p.name, "", pull)
			known, err := k.states.load(ctx, id)
			if err == nil && known.Seq > 0 && f.Updated.Equal(known.Facts.Updated) && differ(f, known.Facts) {
				k.markStale(id, known.Facts) // the list may be older
				k.wake(id)
				return
			}
			if errs[i] = err; err != nil {
				return
			}
			s, news, err := k.noteFacts(ctx, id, f)
			if errs[i] = err; err != nil {
				return
			}
			if k.markUnread(s); news {
				k.wake(id)
			} else {
				k.working.remind(id)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
