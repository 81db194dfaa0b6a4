package fleet

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A Availability is whether a runner gets jobs. The journal has what led to it for good, as events of the runner: its history.
type Availability struct {
	Drained     *Decision `json:"drained,omitempty"`     // by an operator, until one returns it
	Quarantined *Decision `json:"quarantined,omitempty"` // by itself, after faults, until it passes a self-test or an operator returns it
	Asked       *Decision `json:"asked,omitempty"`       // to test itself, by an operator
	// Tests is its self-tests, the last keptTests of them, oldest first.
	Tests []protocol.SelfTest `json:"self_tests,omitempty"`

	seq uint64 // of the last event
}

// Takes tells whether the runner gets jobs.
func (d Availability) Takes() bool { return d.Drained == nil && d.Quarantined == nil }

// A Decision is somebody's decision on a runner.
type Decision struct {
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// The kinds of a runner's events, for good.
const (
	drainedKind     = "drained"
	quarantinedKind = "quarantined"
	returnedKind    = "returned"
	testedKind      = "tested"
	askedKind       = "asked"
)

// availabilityRun is a runner's name as a subject of the journal.
func availabilityRun(name string) string {
	return "runner-" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

func (d *Availability) apply(e journal.Event) error {
	if e.Kind == testedKind {
		return d.tested(e)
	}
	var w Decision
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return err
	}
	w.At, d.seq = e.At.UTC(), e.Seq
	switch e.Kind {
	case drainedKind:
		d.Drained = &w
	case quarantinedKind:
		d.Quarantined = &w
	case returnedKind:
		d.Drained, d.Quarantined = nil, nil
	case askedKind:
		d.Asked = &w
	}
	return nil
}

// under adds what was decided on the host.
func (d Availability) under(host Availability) Availability {
	d.Drained, d.Quarantined = cmp.Or(d.Drained, host.Drained), cmp.Or(d.Quarantined, host.Quarantined)
	return d
}

// availability is a runner's, and its host's.
func (s *Server) availability(ctx context.Context, name string) (Availability, error) {
	own, err := s.ownAvailability(ctx, name)
	if host := hostOf(name); err == nil && host != name {
		var all Availability
		all, err = s.ownAvailability(ctx, host)
		own = own.under(all)
	}
	return own, err
}

// ownAvailability reads a runner's, from the journal if there is news of it.
func (s *Server) ownAvailability(ctx context.Context, name string) (Availability, error) {
	s.mu.Lock()
	known := s.duties[name]
	s.mu.Unlock()
	last, err := s.Journal.Last(ctx, availabilityRun(name))
	if errors.Is(err, journal.ErrNotFound) {
		return Availability{}, nil
	}
	if err != nil {
		return Availability{}, fmt.Errorf("reading the history of the runner %s: %w", name, err)
	}
	if known.seq == last.Seq {
		return known, nil
	}
	var d Availability
	if _, err := s.Journal.ReplayRun(ctx, availabilityRun(name), d.apply); err != nil {
		return Availability{}, fmt.Errorf("reading the history of the runner %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.duties[name] = d
	return d, nil
}

// Drain has a runner finish what it has and take no more; Return ends that. Neither does anything twice.
func (s *Server) Drain(ctx context.Context, name, why string) error {
	return s.decide(ctx, name, drainedKind, why, func(d Availability) bool { return d.Drained == nil })
}

// Return has a runner take jobs again, and all of its host's if it is a host's name.
func (s *Server) Return(ctx context.Context, name string) error {
	var err error
	for _, one := range s.names(name) {
		err = errors.Join(err, s.decide(ctx, one, returnedKind, "", func(d Availability) bool { return !d.Takes() }))
	}
	return err
}

// faultsInARow is how many verdicts in a row must be the runner's fault. One kernel alone can fail on every runner: they must
// be of two at least.
const faultsInARow = 3

// Judged says what became of a runner's last result: whose kernel it was, and why the runner is at fault, "" if it is not.
// A runner that is at fault again and again is put into quarantine.
func (s *Server) Judged(ctx context.Context, name, kernel, fault string) {
	if _, known := s.credential(name); !known {
		return
	}
	s.mu.Lock()
	of := append(s.faults[name], kernel)
	if fault == "" {
		of = nil
	}
	s.faults[name] = of[max(0, len(of)-faultsInARow):]
	of = s.faults[name]
	s.mu.Unlock()
	if len(of) < faultsInARow || len(slices.Compact(slices.Sorted(slices.Values(of)))) < 2 {
		return
	}
	why := fmt.Sprintf("%d verdicts in a row were its fault, the last on %s: %s", faultsInARow, kernel, fault)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishing)
	defer cancel()
	if err := s.decide(ctx, name, quarantinedKind, why, func(d Availability) bool { return d.Quarantined == nil }); err != nil {
		s.Log.Error("could not quarantine a runner that is repeatedly at fault", "runner", name, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name] = nil // it begins anew once it is returned
}

func (s *Server) decide(ctx context.Context, name, kind, why string, news func(Availability) bool) error {
	_, written, err := s.write(ctx, name, kind, Decision{Why: why}, news)
	if written {
		s.Log.Info("the state of a runner has changed", "runner", name, "now", kind, "why", why)
		s.endPoll(name)
	}
	return err
}

// write adds an event to a runner's history if it is news, and returns how the runner was before.
func (s *Server) write(ctx context.Context, name, kind string, event any, news func(Availability) bool) (before Availability, written bool, err error) {
	for {
		before, err = s.ownAvailability(ctx, name)
		if err != nil || !news(before) {
			return before, false, err
		}
		_, err = s.Journal.Append(ctx, availabilityRun(name), before.seq, kind, event)
		if errors.Is(err, journal.ErrConflict) {
			continue
		}
		if err != nil {
			return before, false, fmt.Errorf("writing the history of the runner %s: %w", name, err)
		}
		return before, true, nil
	}
}

// poll is a context for a runner that waits for a job: it ends when its duty changes.
func (s *Server) poll(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.Poll)
	own := &cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls[name] = own
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.polls[name] == own {
			delete(s.polls, name)
		}
	}
}

func (s *Server) endPoll(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for waiting, cancel := range s.polls {
		if within(waiting, name) {
			(*cancel)()
		}
	}
}
