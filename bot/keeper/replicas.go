package keeper

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
	lagTime = 5 * time.Minute // how long something that must be there may not be shown
	looks   = 6               // at what may be old; the last is half a minute after the first
)

// A doubt is that GitHub's answer about a pull request may be older than a delivery.
type doubt struct {
	told  change.Facts // by the delivery
	looks int
	due   time.Time // of the next look
}

// compare notes a doubt where GitHub's answer and a delivery are of the same second and
// differ: either may be the older one.
func (k *Keeper) compare(id change.ID, told, answer change.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !told.Updated.Equal(answer.Updated) || !differ(told, answer) {
		delete(k.unsure, id)
		return
	}
	d := k.unsure[id]
	if d == nil {
		d = &doubt{}
		k.unsure[id] = d
	}
	d.told, d.due = told, k.Now().Add(k.Backoff<<d.looks)
	if d.looks++; d.looks >= looks {
		delete(k.unsure, id)
	}
}

// lookAgain has a pull request refreshed that there is a doubt about, if that is due; else it
// says when it is.
func (k *Keeper) lookAgain(id change.ID) (due time.Time, doubtful bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.unsure[id]
	if d == nil {
		return time.Time{}, false
	}
	if !k.Now().Before(d.due) {
		k.stale[id] = d.told
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
	looks  int
}

func (k *Keeper) markPushed(p place, e webhook.Push) {
	at := &push{before: e.Before}
	if e.Made() {
		at.before = ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pushed[p] = at
}

func (k *Keeper) forgetPush(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pushed, p)
}

// fetched says when a branch is to be looked at again that git shows at a commit, if that is
// the one from before a push.
func (k *Keeper) fetched(p place, tip string) (due time.Time, old bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.pushed[p]
	if at == nil || at.before != tip || at.looks == looks {
		delete(k.pushed, p)
		return time.Time{}, false
	}
	at.looks++
	return k.Now().Add(k.Backoff << (at.looks - 1)), true
}
