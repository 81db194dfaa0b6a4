package tune

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// A Replay is a lab that measures nothing: it takes everything from the log of an earlier search. A
// candidate that the log does not have is unknown.
type Replay struct {
	log    *Log
	rounds []int // of the log, that were not used yet
	now    int   // the round of the log that is measured
}

// NewReplay returns a lab for a log.
func NewReplay(log *Log) *Replay {
	return &Replay{log: log, rounds: slices.Sorted(maps.Keys(log.rounds))}
}

// Header is that of a search on the log with a different strategy.
func (r *Replay) Header(proposer string, seed uint64) Header {
	h := r.log.Header
	h.Proposer, h.Seed, h.Exhaustive = proposer, seed, false
	return h
}

// MemoryLog is a log that is not written.
func MemoryLog(h Header) *Log {
	l := newLog()
	l.Header = h
	return l
}

func (r *Replay) Device() string { return r.log.Header.Device }

func (r *Replay) Build(_ context.Context, id string, _ Candidate) (Built, error) {
	if b, ok := r.log.build(id); ok {
		return b, nil
	}
	return Built{ID: id, Unknown: true}, nil
}

// Screen takes what the log has: its screen or, if it had none, the first round of each candidate.
func (r *Replay) Screen(_ context.Context, ids []string, _ []Candidate) ([]Screened, error) {
	var all []Screened
	for _, id := range ids {
		s, ok := r.log.screens[id]
		if !ok {
			s = r.first(id)
		}
		if checked := r.log.checks[id]; checked.Refusal != nil {
			s.Refusal = checked.Refusal
		}
		all = append(all, s)
	}
	return all, nil
}

// first is the first round of a candidate, at the whole cost of that round, although a screen takes less. One round says nothing
// about its noise.
func (r *Replay) first(id string) Screened {
	for _, n := range slices.Sorted(maps.Keys(r.log.rounds)) {
		if t, ok := r.log.rounds[n][id]; ok {
			return Screened{Refusal: t.Refusal, Speedups: t.Speedups, Micros: t.Micros, Seconds: t.Seconds}
		}
	}
	return Screened{}
}

func (r *Replay) Check(_ context.Context, id string, _ Candidate) (Checked, error) {
	return r.log.checks[id], nil // a log without it knew the failure, or met its end before
}

// Begin takes the next round of the log that had all of the arms.
func (r *Replay) Begin(arms []string, _ []Candidate) bool {
	for i, n := range r.rounds {
		if !slices.ContainsFunc(arms, func(id string) bool { _, ok := r.log.rounds[n][id]; return !ok }) {
			r.now, r.rounds = n, slices.Delete(slices.Clone(r.rounds), i, i+1)
			return true
		}
	}
	return false
}

func (r *Replay) Round(_ context.Context, id string, _ Candidate) (Timed, error) {
	return r.log.rounds[r.now][id], nil
}

func (r *Replay) Sanitize(_ context.Context, id string, _ Candidate) (Checked, error) {
	return r.log.sanitized[id], nil
}

func (r *Replay) Confirm(context.Context, string, Candidate, Attempt) (Confirmed, error) {
	return Confirmed{}, errors.New("a replay measures nothing")
}

func (r *Replay) Release(string) {}
