package controller

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// One of several bots on one journal leads, and only the leader reconciles and publishes. The others
// store webhooks and wait. The journal fences writes to itself. Before each write to GitHub, the
// client checks that the bot still leads (client.Options.MayWrite). A bot that is stopped between
// the check and the write, and continues when another bot leads, may make that one write. It then
// reports which changes it worked on, and the leader publishes them again.

// Run works whenever this bot leads, until ctx ends. The ledger must be following the
// journal already.
func (k *Controller) Run(ctx context.Context) error { return k.Journal.Campaign(ctx, k.runAsLeader) }

// runAsLeader works until ctx or the lead ends. It starts without memory, as a new process does: a
// different bot may have changed everything since.
func (k *Controller) runAsLeader(ctx context.Context) error {
	defer k.listed.Store(false)
	if err := k.catchUp(ctx); err != nil {
		return err
	}
	k.resetMemory()
	if err := k.restoreEnds(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.reconcileQueue.start(ctx)
	k.publishQueue.start(ctx)
	k.resyncQueue.start(ctx)
	var all sync.WaitGroup
	errs := make(chan error, 5)
	for _, loop := range []func(context.Context) error{k.resyncLoop, k.rereadLoop, k.deliveryLoop, k.sweeper().Run, k.watcher().Run} {
		all.Go(func() {
			defer cancel() // all must run, or none
			errs <- loop(ctx)
		})
	}
	all.Wait()
	k.resyncQueue.drain()
	under := append(k.reconcileQueue.drain(), k.publishQueue.drain()...)
	if !k.Journal.Leads() {
		k.reportInFlight(ctx, under)
	}
	close(errs)
	var joined error
	for err := range errs {
		joined = errors.Join(joined, err)
	}
	return joined
}

// catchUp waits until the ledger has all that was written before this bot led.
func (k *Controller) catchUp(ctx context.Context) error {
	err := k.Ledger.CaughtUp(ctx)
	for err == nil {
		newest, failed := k.Journal.Newest(ctx)
		if failed == nil {
			err = k.Ledger.WaitFor(ctx, newest)
			break
		}
		k.Log.Warn("the journal does not report its position; the bot asks again", "err", failed)
		select {
		case <-time.After(k.Backoff):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("waiting for the ledger: %w", err)
	}
	return nil
}

// resetMemory clears everything in memory except counters and the results of pure functions.
func (k *Controller) resetMemory() {
	k.mu.Lock()
	k.stale, k.unread = map[change.ID]change.Facts{}, map[change.ID]bool{}
	k.conflicts, k.pushed = map[change.ID]*conflict{}, map[resyncTarget]*push{}
	k.positionsChecked, k.unlisted = time.Time{}, nil
	k.mu.Unlock()
	k.repos.Reset()
	k.progress.Purge()
	k.positions.Purge()
	k.firstSeen.Purge()
	k.lastPublished.Purge()
	k.progressed.Purge()
	k.planFailures.Purge()
	k.looked.Purge()
	k.redeliverer.forget()
	k.states.clear()
}

// inFlightEvent is the delivery by which a deposed leader reports to the new one.
const inFlightEvent = "kernelgate_in_flight"

// reportInFlight reports to the leader which changes this bot was working on when it lost the lead.
func (k *Controller) reportInFlight(ctx context.Context, under []change.ID) {
	if len(under) == 0 {
		return
	}
	var names []string
	for _, id := range under {
		names = append(names, id.String())
	}
	body, err := json.Marshal(names)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	d := webhook.Delivery{ID: "in-flight-" + rand.Text(), Event: inFlightEvent, Received: k.Now(), Body: body}
	for err == nil {
		if _, err = k.Journal.Accept(ctx, d); err == nil {
			k.Log.Info("the lead was lost in the middle of work, which the new leader publishes again", "changes", len(under))
			return
		}
		k.Log.Warn("cannot yet report the changes that were in work when the lead was lost", "err", err)
		select {
		case <-time.After(k.Backoff):
			err = nil
		case <-ctx.Done():
		}
	}
	k.Log.Error("cannot report the changes that were in work when the lead was lost: GitHub may show old texts there (comment /rebench)", "changes", names, "err", err)
}

// recordInFlight republishes changes that a deposed leader may have written to.
func (k *Controller) recordInFlight(ctx context.Context, body []byte) error {
	var names []string
	if err := json.Unmarshal(body, &names); err != nil {
		return fmt.Errorf("reading the changes of a deposed leader: %w", err)
	}
	for _, name := range names {
		id, err := change.ParseID(name)
		if err != nil {
			return fmt.Errorf("reading the changes of a deposed leader: %w", err)
		}
		_, err = k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
			if now.Seq == 0 {
				return nil, nil
			}
			return change.RepublishAsked{}, nil // once more: the first publication may have come before the old leader's write
		})
		if err != nil {
			return err
		}
		k.enqueueChange(id)
	}
	return nil
}
