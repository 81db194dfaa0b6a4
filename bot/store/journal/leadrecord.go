package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/compat"
)

// leadRecord names the leader. Every change of it is conditional on the revision that the writer
// has seen.
type leadRecord struct {
	Epoch  uint64 `json:"epoch"`            // grows with every new leader
	Holder string `json:"holder,omitempty"` // empty after the leader resigned
	Name   string `json:"name"`             // of the holder, for people
	// Address is where the holder can be reached; empty if the holder does not publish it.
	Address string `json:"address,omitempty"`
	// Version is the version of the holder or of the last holder. It is empty for a build without a version.
	Version string `json:"version,omitempty"`
}

// Job ids have no dot, so this cannot be one.
const leadKey = "lead.bot"

// acquireLead waits until this process leads. Its context ends with the lead.
func (j *Journal) acquireLead(ctx context.Context) (context.Context, error) {
	l := &j.lead
	var seen uint64
	var since, announced time.Time
	var others announcements
	for {
		rec, revision, err := getRecord[leadRecord](ctx, j.leases, leadKey)
		switch {
		case errors.Is(err, errGarbled):
			return nil, err
		case err != nil && ctx.Err() == nil:
			j.opt.Log.Warn("cannot find out who leads; it is asked again soon", "error", err)
		case err == nil:
			free := revision == 0 || rec.Holder == "" || rec.Holder == l.holder
			if revision != seen {
				seen, since = revision, time.Now()
			}
			l.mu.Lock()
			if l.other, l.where = rec.Name, rec.Address; free {
				l.other, l.where = "", ""
			}
			// The record expires if nobody has led for a month, and events do not.
			epoch := max(rec.Epoch, l.highest) + 1
			l.mu.Unlock()
			if !free && compat.Older(rec.Version, j.opt.Version) && time.Since(announced) >= j.opt.LeadFor/4 {
				j.announce(ctx)
				announced = time.Now()
			}
			if !j.mayTake(ctx, rec, free, time.Since(since), &others) {
				break
			}
			led, err := j.tryLead(ctx, leadRecord{Epoch: epoch, Holder: l.holder, Name: j.opt.Name, Address: j.opt.Address, Version: j.opt.Version}, revision)
			if err == nil {
				j.opt.Log.Info("this bot leads", "epoch", epoch, "before", rec.Name)
				return led, nil
			}
			if !IsConflict(err) && ctx.Err() == nil {
				j.opt.Log.Warn("cannot take the lead; it is tried again soon", "error", err)
			}
		}
		select {
		case <-time.After(j.opt.LeadFor / 12):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (j *Journal) tryLead(ctx context.Context, rec leadRecord, revision uint64) (context.Context, error) {
	sent := time.Now()
	try, cancel := context.WithTimeout(ctx, j.opt.LeadFor/3)
	defer cancel()
	revision, err := writeRecord(try, j.leases, leadKey, rec, revision)
	if err != nil {
		return nil, err // if only the answer was lost, the record names this process, and the next read finds it
	}
	led, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &j.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.revision, l.sent, l.lasts, l.led, l.lost = rec.Epoch, revision, sent, j.opt.LeadFor, led, lost
	return led, nil
}

// keepLead renews the lead at intervals, and ends it when a renewal fails for too long.
func (j *Journal) keepLead(ctx context.Context) {
	for {
		j.lead.mu.Lock()
		left := j.lead.left()
		j.lead.mu.Unlock()
		if left <= 0 {
			_, _ = j.fence() // it ends the lead
			return
		}
		select {
		case <-time.After(min(left, j.opt.LeadFor/4)):
		case <-ctx.Done():
			return
		}
		if err := j.renewLead(ctx); err != nil && ctx.Err() == nil {
			j.opt.Log.Warn("cannot say that this bot leads", "error", err)
		}
	}
}

// renewLead writes that this process still leads.
func (j *Journal) renewLead(ctx context.Context) error {
	l := &j.lead
	l.turn.Lock()
	defer l.turn.Unlock()
	for range 2 {
		l.mu.Lock()
		rec, revision, left := leadRecord{Epoch: l.epoch, Holder: l.holder, Name: j.opt.Name, Address: j.opt.Address, Version: j.opt.Version}, l.revision, l.left()
		l.mu.Unlock()
		if left <= 0 {
			_, err := j.fence()
			return err
		}
		sent := time.Now()
		try, cancel := context.WithTimeout(ctx, min(left, j.opt.LeadFor/3))
		now, err := writeRecord(try, j.leases, leadKey, rec, revision)
		cancel()
		if err == nil {
			l.mu.Lock()
			l.revision, l.sent = now, sent
			l.mu.Unlock()
			return nil
		}
		if !IsConflict(err) {
			return err
		}
		// Written by another process, or by this one if its last answer was lost.
		is, revision, err := getRecord[leadRecord](ctx, j.leases, leadKey)
		if err != nil {
			return err
		}
		if is.Holder != rec.Holder || is.Epoch != rec.Epoch {
			l.stepDown(fmt.Errorf("%q has taken the lead", is.Name))
			return ErrNotLeading
		}
		l.mu.Lock()
		l.revision = revision
		l.mu.Unlock()
	}
	return errors.New("the record of who leads changes all the time")
}

// resign lets another process lead at once.
func (j *Journal) resign(ctx context.Context) {
	l := &j.lead
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	epoch, revision := l.epoch, l.revision
	l.end(errors.New("it was given back"))
	l.mu.Unlock()
	l.deposed()
	if epoch == 0 {
		return
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.opt.answerIn)
	defer cancel()
	if _, err := writeRecord(late, j.leases, leadKey, leadRecord{Epoch: epoch, Name: j.opt.Name, Version: j.opt.Version}, revision); err != nil && !IsConflict(err) {
		j.opt.Log.Warn("cannot give the lead back; another bot takes it when it is missed", "error", err)
	}
}
