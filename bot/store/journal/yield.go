package journal

import (
	"context"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
)

// Bots of two neighbouring versions may share a server while an operator replaces them one by one. The newest version leads:
// it can read all events of the older bots, but they may not be able to read its events. A bot on standby that is newer than
// the leader announces itself at intervals. The leader finishes its work, as it does before it stops, and gives the lead back.
// No bot takes the lead from a leader that is alive, so two bots never write to GitHub at the same time.

// candidateKey is the key of the announcement. Job ids have no dot, so this cannot be one.
const candidateKey = "lead.candidate"

// A candidate is a bot on standby that is newer than the leader.
type candidate struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// announcements watches the announcements of other bots. An announcement counts from the moment when it was first seen, for
// as long as a leader may be silent.
type announcements struct {
	revision uint64
	since    time.Time
	changed  bool // it was renewed while this process watched
	candidate
}

// look reads the announcement.
func (a *announcements) look(ctx context.Context, j *Journal) error {
	c, revision, err := getRecord[candidate](ctx, j.leases, candidateKey)
	if err != nil {
		return err
	}
	if revision != a.revision {
		a.changed = a.revision != 0
		a.revision, a.since, a.candidate = revision, time.Now(), c
	}
	return nil
}

// newer reports whether a newer bot than this one has announced itself and may still be there.
func (a *announcements) newer(j *Journal) bool {
	return compat.Older(j.opt.Version, a.Version) && time.Since(a.since) < j.longerThanLead()
}

// longerThanLead is a quarter longer than a leader may be silent, for clocks that run at different speeds.
func (j *Journal) longerThanLead() time.Duration { return j.opt.LeadFor * 5 / 4 }

// announce stores the announcement that this process is newer than the leader.
func (j *Journal) announce(ctx context.Context) {
	if err := putRecord(ctx, j.leases, candidateKey, candidate{Name: j.opt.Name, Version: j.opt.Version}); err != nil && ctx.Err() == nil {
		j.opt.Log.Warn("cannot ask the older leader for the lead; this bot tries again soon", "error", err)
	}
}

// watchForNewer calls yield when a newer bot announces itself while this process leads. One look at the record is not enough:
// the record stays after its bot has gone, so watchForNewer waits until the record changes.
func (j *Journal) watchForNewer(ctx context.Context, yield func()) {
	if j.opt.Version == "" {
		return
	}
	var seen announcements
	for {
		if err := seen.look(ctx, j); err != nil && ctx.Err() == nil {
			j.opt.Log.Warn("cannot find out whether a newer bot is on standby; this bot tries again soon", "error", err)
		}
		if seen.changed && compat.Older(j.opt.Version, seen.Version) {
			j.opt.Log.Info("this bot gives the lead to a newer version", "version", j.opt.Version, "newer", seen.Version, "bot", seen.Name)
			yield()
			return
		}
		select {
		case <-time.After(j.opt.LeadFor / 4):
		case <-ctx.Done():
			return
		}
	}
}

// mayTake reports whether this process may take a lead that is free or whose holder is silent. The record has been unchanged
// for the given time. A bot that is older than the last leader waits longer, so that a bot of the newer version can take the
// lead first. If no newer bot is left, because the operator went back to the older version, the older bot leads.
func (j *Journal) mayTake(ctx context.Context, rec leadRecord, free bool, unchanged time.Duration, others *announcements) bool {
	wait := time.Duration(0)
	if !free {
		wait += j.longerThanLead()
	}
	if compat.Older(j.opt.Version, rec.Version) {
		wait += j.longerThanLead()
	}
	if unchanged < wait || j.opt.Version == "" {
		return unchanged >= wait
	}
	if err := others.look(ctx, j); err != nil {
		if ctx.Err() == nil {
			j.opt.Log.Warn("cannot find out whether a newer bot is on standby; this bot tries again soon", "error", err)
		}
		return false
	}
	return !others.newer(j)
}
