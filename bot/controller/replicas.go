package controller

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// GitHub's replicas show a push or an edit seconds after its webhook. So the bot repeats a request
// whose answer may be old, with growing pauses. The resync finds differences that last longer.

const (
	lagTime   = 5 * time.Minute // how long something that must exist may be missing
	maxChecks = 6               // between requests; the last is half a minute after the first
)

// A conflict records that GitHub's answer about a pull request may be older than a delivery.
type conflict struct {
	delivered change.Facts // by the delivery
	checks    int
	due       time.Time // when to ask again
}

// recordConflict records a conflict if GitHub's answer and a delivery have the same second and
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

// recheckConflict marks a pull request with a conflict for a refresh, if that is due; otherwise it
// returns when it is due.
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

// differ reports whether two views of a pull request lead to different actions.
func differ(a, b change.Facts) bool {
	for _, f := range []*change.Facts{&a, &b} {
		f.Rules, f.Members, f.Labels = "", nil, slices.Sorted(slices.Values(f.Labels))
	}
	return a.Open != b.Open || a.PlanKey() != b.PlanKey()
}

// A push is a push that a delivery reported.
type push struct {
	before string // the commit before the push, "" for a new branch
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

// staleTip returns when to look at a branch again if git still shows the commit from before a push.
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
