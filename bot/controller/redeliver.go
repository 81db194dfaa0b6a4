package controller

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// maxRedeliveries is how often the bot requests one delivery: if its own address refuses the
// delivery each time, more requests do not help.
const maxRedeliveries = 3

// GitHub lists deliveries for three days. A later list starts an hour before the newest failure
// that was seen: GitHub lists a delivery when it has ended, which may be after a later one.
const (
	deliveriesKept = 3 * 24 * time.Hour
	listedAgain    = time.Hour
)

// hooks is the part of GitHub's API that redeliveries need.
type hooks interface {
	FailedDeliveries(ctx context.Context, cursor string) ([]client.Delivery, string, error)
	Redeliver(ctx context.Context, id int64) error
}

// A redeliverer requests the webhooks that GitHub could not deliver, because GitHub does not repeat
// them. It runs with the resync. A pass that runs out of time continues in the next one.
type redeliverer struct {
	hooks hooks
	// stored reports whether the journal has a delivery: a later attempt may have succeeded after
	// the failed one, and GitHub does not list that.
	stored func(ctx context.Context, event, guid string) (bool, error)
	now    func() time.Time
	log    *slog.Logger

	newest  time.Time               // of the failures that were listed
	rest    *walk                   // the rest of a list that was cut short
	waiting []client.Delivery       // to be asked for
	asked   *lru.Cache[string, ask] // by GUID
}

// A walk goes through the list of failures, newest first, down to a time.
type walk struct {
	cursor string
	until  time.Time
}

// An ask counts the requests for one webhook, and names its last attempt that was seen.
type ask struct {
	times int
	try   int64
}

func newRedeliverer(k *Controller) *redeliverer {
	return &redeliverer{hooks: k.GitHub, stored: k.Journal.Accepted, now: k.Now, log: k.Log, asked: newLRU[string, ask](cacheSize)}
}

// forget starts again with everything that GitHub lists.
func (r *redeliverer) forget() {
	r.newest, r.rest, r.waiting = time.Time{}, nil, nil
	r.asked.Purge()
}

// pass lists the failures since the last pass and requests them again. It returns why the list is
// incomplete, if it is.
func (r *redeliverer) pass(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	err := r.list(listing)
	if err != nil && ctx.Err() == nil {
		reached := "nothing"
		if r.rest != nil {
			reached = "what is older is listed in the next pass"
		}
		r.log.Warn("listing failed deliveries did not end", "found", len(r.waiting), "reached", reached, "err", err)
	}
	asking, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	r.askForAll(asking)
	if ctx.Err() == nil && len(r.waiting) > 0 {
		r.log.Warn("failed deliveries are left to be asked for in the next pass", "deliveries", len(r.waiting))
	}
	return err
}

func (r *redeliverer) list(ctx context.Context) error {
	front := walk{until: r.now().Add(-deliveriesKept)}
	if seen := r.newest.Add(-listedAgain); seen.After(front.until) {
		front.until = seen
	}
	newest, err := r.walk(ctx, &front)
	if front.cursor != "" || err == nil {
		r.newest = newest
	}
	if err != nil {
		if front.cursor != "" { // some of the list was read
			if r.rest != nil && r.rest.until.Before(front.until) {
				front.until = r.rest.until
			}
			r.rest = &front
		}
		return err
	}
	if r.rest == nil {
		return nil
	}
	_, err = r.walk(ctx, r.rest)
	if client.IsPermanent(err) { // the cursor is too old
		r.newest = time.Time{}
	}
	if err == nil || client.IsPermanent(err) {
		r.rest = nil
	}
	return err
}

// walk reads the list to the end of the walk, and advances the cursor.
func (r *redeliverer) walk(ctx context.Context, w *walk) (newest time.Time, err error) {
	newest = r.newest
	for {
		page, next, err := r.hooks.FailedDeliveries(ctx, w.cursor)
		if err != nil {
			return newest, err
		}
		for _, d := range page {
			if d.At.Before(w.until) {
				return newest, nil
			}
			if d.At.After(newest) {
				newest = d.At
			}
			r.found(d)
		}
		if next == "" {
			return newest, nil
		}
		w.cursor = next
	}
}

// found records a failed attempt. The newest attempt of a webhook comes first.
func (r *redeliverer) found(d client.Delivery) {
	a, _ := r.asked.Get(d.GUID)
	if a.try >= d.ID || !webhook.UsedAction(d.Event, d.Action) {
		return
	}
	a.try = d.ID
	r.asked.Add(d.GUID, a)
	if a.times >= maxRedeliveries {
		r.log.Warn("a webhook did not arrive and is given up: see the App's deliveries at GitHub for the reason", "delivery", d.GUID, "event", d.Event, "action", d.Action, "status", d.StatusCode, "asked", a.times)
		return
	}
	r.waiting = append(r.waiting, d)
}

// askForAll requests the waiting deliveries, oldest first, and keeps those that it had no time for.
func (r *redeliverer) askForAll(ctx context.Context) {
	slices.SortFunc(r.waiting, func(a, b client.Delivery) int { return cmp.Compare(a.ID, b.ID) })
	var left []client.Delivery
	for _, d := range r.waiting {
		if ctx.Err() != nil || !r.askFor(ctx, d) {
			left = append(left, d)
		}
	}
	r.waiting = left
}

// askFor reports whether a delivery is settled.
func (r *redeliverer) askFor(ctx context.Context, d client.Delivery) bool {
	stored, err := r.stored(ctx, d.Event, d.GUID)
	if err == nil && !stored {
		err = r.hooks.Redeliver(ctx, d.ID)
	}
	switch {
	case err == nil && stored:
		return true
	case err == nil:
		a, _ := r.asked.Get(d.GUID)
		a.times++
		r.asked.Add(d.GUID, a)
		return true
	case client.IsPermanent(err):
		r.log.Warn("GitHub does not deliver a webhook again; it is given up", "delivery", d.GUID, "event", d.Event, "action", d.Action, "err", err)
		return true
	case ctx.Err() == nil:
		r.log.Warn("asking for a redelivery failed", "delivery", d.GUID, "err", err)
	}
	return false
}
