package controller

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// GitHub's replicas follow a push or an edit after seconds, and a webhook does not wait for
// them. So an answer that could be old is asked for again, with a growing pause: what differs
// for longer than that is no lag, and the reconciliation finds it.

const (
	lagTime   = 5 * time.Minute // how long something that must be there may not be shown
	maxChecks = 6               // at what may be old; the last is half a minute after the first
)

// A conflict is that GitHub's answer about a pull request may be older than a delivery.
type conflict struct {
	delivered change.Facts // by the delivery
	checks    int
	due       time.Time // of the next look
}

// recordConflict notes a doubt where GitHub's answer and a delivery are of the same second and
// differ: either may be the older one.
func (k *Controller) recordConflict(id change.ID, told, answer change.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !told.Updated.Equal(answer.Updated) || !differ(told, answer) {
		delete(k.conflicts, id)
		return
	}
	d := k.conflicts[id]
	if d == nil {
		d = &conflict{}
		k.conflicts[id] = d
	}
	d.delivered, d.due = told, k.Now().Add(k.Backoff<<d.checks)
	if d.checks++; d.checks >= maxChecks {
		delete(k.conflicts, id)
	}
}

// recheckConflict has a pull request refreshed that there is a doubt about, if that is due; else it
// says when it is.
func (k *Controller) recheckConflict(id change.ID) (due time.Time, doubtful bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.conflicts[id]
	if d == nil {
		return time.Time{}, false
	}
	if !k.Now().Before(d.due) {
		k.stale[id] = d.delivered
	}
	return d.due, true
}

// differ tells whether two views of a pull request lead to something else.
func differ(a, b change.Facts) bool {
	for _, f := range []*change.Facts{&a, &b} {
		f.Rules, f.Members, f.Labels = "", nil, slices.Sorted(slices.Values(f.Labels))
	}
	return a.Open != b.Open || a.PlanKey() != b.PlanKey()
}

// A push is one that a delivery told of.
type push struct {
	before string // the commit that the branch was at, "" where there was none
	checks int
}

func (k *Controller) markPushed(p resyncTarget, e webhook.Push) {
	at := &push{before: e.Before}
	if e.Made() {
		at.before = ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pushed[p] = at
}

func (k *Controller) forgetPush(p resyncTarget) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pushed, p)
}

// staleTip says when a branch is to be looked at again that git shows at a commit, if that is
// the one from before a push.
func (k *Controller) staleTip(p resyncTarget, tip string) (due time.Time, old bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.pushed[p]
	if at == nil || at.before != tip || at.checks == maxChecks {
		delete(k.pushed, p)
		return time.Time{}, false
	}
	at.checks++
	return k.Now().Add(k.Backoff << (at.checks - 1)), true
}
