package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/change/observed"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/repos"
)

// A resyncTarget is a repository or, when only the rules are compared, one of its branches.
type resyncTarget struct {
	repo   int64
	name   string
	branch string
}

func (p resyncTarget) String() string {
	if p.branch == "" {
		return p.name
	}
	return p.name + "@" + p.branch
}

func (k *Controller) laneOfTarget(_ context.Context, p resyncTarget) (lane, error) {
	return lane{account: k.GitHub.Account(p.name)}, nil
}

// resyncLoop resyncs all repositories at the start and every few minutes.
func (k *Controller) resyncLoop(ctx context.Context) error {
	tick := time.NewTicker(k.ResyncEvery)
	defer tick.Stop()
	for {
		k.resyncAll(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Installations listed at once, and the deadline of one list.
const (
	listAtOnce  = 32
	listTimeout = time.Minute
)

func (k *Controller) resyncAll(ctx context.Context) {
	p := pass{asked: k.repos.Moment()}
	ids, err := k.Ledger.Unsettled(ctx)
	if err != nil {
		p.missed(err)
		k.Log.Error("reading the ledger failed", "err", err)
	}
	for _, id := range ids {
		k.reconcileQueue.addIfAbsent(id)
	}
	var all, listing sync.WaitGroup
	if k.GitHub.UsesChecks() {
		all.Go(func() { p.missed(k.redeliverer.pass(ctx)) })
	}
	atOnce := make(chan struct{}, listAtOnce)
	var unlisted atomic.Int64 // lists that GitHub did not give, and may give later
	lists, err := k.lists(ctx)
	p.missed(err)
	if transient(err) {
		unlisted.Add(1)
	}
	for _, list := range lists {
		listing.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			within, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			listed, err := list(within)
			if transient(err) {
				unlisted.Add(1)
			}
			if p.listed(err); err != nil && ctx.Err() == nil {
				k.Log.Warn("listing repositories failed; they are listed again soon", "err", err)
			}
			for _, r := range listed {
				p.seen.Store(r.ID, true)
				p.missed(k.observeListed(ctx, r, p.asked))
			}
		})
	}
	listing.Wait()
	if ctx.Err() == nil && unlisted.Load() == 0 {
		k.listed.Store(true)
	}
	all.Wait()
	if ctx.Err() == nil {
		p.missed(k.withdrawPublic(ctx))
	}
	if ctx.Err() == nil && p.complete(len(lists)) {
		if err == nil { // GitHub has named every installation
			err = k.removeUnlisted(ctx, &p)
		}
		if transient(err) {
			k.Log.Warn("cannot record which repositories are gone; the next resync tries again", "err", err)
		}
		k.count(func(c *Counts) { c.Reconciled = k.Now() })
	}
}

// A pass counts the lists and the failures of one resync.
type pass struct {
	asked         repos.Moment // before anything was listed
	lists, misses atomic.Int64
	seen          sync.Map // numbers of the repositories that GitHub listed
}

// missed counts a request without an answer. A permanent refusal is an answer: it stays until people change something
// on GitHub.
func (p *pass) missed(err error) {
	if transient(err) {
		p.misses.Add(1)
	}
}

func transient(err error) bool { return err != nil && !client.IsPermanent(err) }

func (p *pass) listed(err error) {
	if p.missed(err); err == nil {
		p.lists.Add(1)
	}
}

// complete reports whether everything was listed. Where GitHub refuses every list, nothing was.
func (p *pass) complete(lists int) bool {
	return p.misses.Load() == 0 && (p.lists.Load() > 0 || lists == 0)
}

// lists returns one function per installation that lists its repositories. A token cannot list its repositories, so the
// configuration names them.
func (k *Controller) lists(ctx context.Context) ([]func(context.Context) ([]client.Repository, error), error) {
	var out []func(context.Context) ([]client.Repository, error)
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	ids, err := k.GitHub.Installations(listing)
	if errors.Is(err, client.ErrNeedsApp) {
		for _, name := range k.Repositories {
			out = append(out, func(ctx context.Context) ([]client.Repository, error) {
				r, err := k.GitHub.Repository(ctx, name)
				if err != nil {
					return nil, err
				}
				k.repos.Rename(r.ID, r.FullName) // it may differ from the name in the configuration
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

// observeListed enqueues a listed repository, or suspends it if it is archived or disabled.
func (k *Controller) observeListed(ctx context.Context, r client.Repository, asked repos.Moment) error {
	if !k.repos.Resume(r.ID, asked) {
		return nil
	}
	if err := k.recordPublic(ctx, r.ID, r.FullName); err != nil {
		return err
	}
	if !k.repos.Known(r.Repository) {
		return k.recordName(ctx, r.ID, r.FullName, asked)
	}
	if err := k.rename(ctx, r.ID, r.FullName, asked); err != nil {
		return err
	}
	switch {
	case r.Archived || r.Disabled:
		k.repos.Suspend(r.ID, r.FullName, errors.New("it is archived or disabled"))
	default:
		k.resyncQueue.addIfAbsent(resyncTarget{repo: r.ID, name: r.FullName})
	}
	return nil
}

// resync compares a repository, or the rules of one branch, with the bot's state. The repository may have been renamed or
// removed since it was enqueued, so its current name is used.
func (k *Controller) resync(ctx context.Context, p resyncTarget) error {
	if k.repos.Doubtful(p.repo) {
		if err := k.settleDoubt(ctx, p.repo, cmp.Or(k.repos.Name(p.repo), p.name)); err != nil {
			return err
		}
	}
	if k.repos.Suspended(p.repo) {
		return nil
	}
	p.name = cmp.Or(k.repos.Name(p.repo), p.name)
	var err error
	if p.branch != "" {
		err = k.resyncBranch(ctx, p)
	} else {
		err = k.resyncPulls(ctx, p)
	}
	if errors.Is(err, client.ErrUnavailable) || client.NotFound(err) {
		k.repos.Suspend(p.repo, p.name, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", p, err)
	}
	return nil
}

func (k *Controller) resyncBranch(ctx context.Context, p resyncTarget) error {
	pulls, err := k.Ledger.OpenPulls(ctx, p.repo)
	if err != nil {
		return err
	}
	tip, asked, err := k.rulesOf(ctx, p.name, p.branch, pulls)
	if err != nil {
		return err
	}
	if !asked { // it has no open pull request
		k.forgetPush(p)
	} else if due, old := k.staleTip(p, tip); old {
		return requeueAt(due)
	}
	return nil
}

func (k *Controller) resyncPulls(ctx context.Context, p resyncTarget) error {
	pulls, err := k.GitHub.OpenPulls(ctx, p.name)
	if err != nil {
		return err
	}
	open := map[int]bool{}
	for _, pull := range pulls {
		if pull.Shut {
			return client.ErrUnavailable // before any of them costs a write
		}
		if pull.BaseID != p.repo {
			return otherRepository(p.name, pull.BaseID)
		}
		open[pull.Number] = true
	}
	if err := k.recordPulls(ctx, p, pulls); err != nil {
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
			k.enqueueChange(pull.ID)
		} else if pull.Base != "" && !bases[pull.Base] {
			bases[pull.Base] = true
			if _, _, err := k.rulesOf(ctx, p.name, pull.Base, known); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordsAtOnce is how many pull requests are recorded concurrently: the journal writes them to disk
// together.
const recordsAtOnce = 64

// recordPulls records GitHub's view of pull requests and enqueues all of them.
func (k *Controller) recordPulls(ctx context.Context, p resyncTarget, pulls []client.Pull) error {
	var all sync.WaitGroup
	errs, atOnce := make([]error, len(pulls)), make(chan struct{}, recordsAtOnce)
	for i, pull := range pulls {
		atOnce <- struct{}{}
		all.Go(func() {
			defer func() { <-atOnce }()
			id := change.ID{Kind: change.Pull, Repo: p.repo, Number: pull.Number}
			f := observed.OfPull(p.name, "", pull)
			known, err := k.states.load(ctx, id)
			if err == nil && known.Seq > 0 && f.Updated.Equal(known.Facts.Updated) && differ(f, known.Facts) {
				k.markStale(id, known.Facts) // the list may be older
				k.enqueueChange(id)
				return
			}
			if errs[i] = err; err != nil {
				return
			}
			s, news, err := k.recordFacts(ctx, id, f)
			if errs[i] = err; err != nil {
				return
			}
			if k.markUnread(s); news {
				k.enqueueChange(id)
			} else {
				k.reconcileQueue.addIfAbsent(id)
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
