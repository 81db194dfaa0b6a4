package fleet

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// An Availability says whether a runner gets jobs. The journal keeps the events that led to it: the
// history of the runner.
type Availability struct {
	Drained     *Decision `json:"drained,omitempty"`     // by an operator, until one returns it
	Quarantined *Decision `json:"quarantined,omitempty"` // by the bot, after faults, until the runner passes a self-test or an operator returns it
	Asked       *Decision `json:"asked,omitempty"`       // an operator asked for a self-test
	// Tests holds the last keptTests self-tests, oldest first.
	Tests []protocol.SelfTest `json:"self_tests,omitempty"`

	seq uint64 // of the last event
}

// Takes reports whether the runner gets jobs.
func (d Availability) Takes() bool { return d.Drained == nil && d.Quarantined == nil }

// A Decision is a decision of a person about a runner.
type Decision struct {
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
}

// The kinds of a runner's events. They are stored, so they never change.
const (
	drainedKind     = "drained"
	quarantinedKind = "quarantined"
	returnedKind    = "returned"
	testedKind      = "tested"
	askedKind       = "asked"
)

// availabilityRun returns the runner's name as a subject of the journal.
func availabilityRun(name string) string {
	return "runner-" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

func (d *Availability) apply(e journal.Event) error {
	if e.Kind == testedKind {
		return d.tested(e)
	}
	var w Decision
	if err := e.Writer.Decode(e.Kind, e.Data, &w); err != nil {
		return err
	}
	w.At = e.At.UTC()
	switch e.Kind {
	case drainedKind:
		d.Drained = &w
	case quarantinedKind:
		d.Quarantined = &w
	case returnedKind:
		d.Drained, d.Quarantined = nil, nil
	case askedKind:
		d.Asked = &w
	default:
		return e.Writer.Unknown(fmt.Sprintf("an event of the kind %q about a runner", e.Kind))
	}
	d.seq = e.Seq
	return nil
}

// under adds what was decided about the host.
func (d Availability) under(host Availability) Availability {
	d.Drained, d.Quarantined = cmp.Or(d.Drained, host.Drained), cmp.Or(d.Quarantined, host.Quarantined)
	return d
}

// availability returns the availability of a runner, with that of its host.
func (s *Server) availability(ctx context.Context, name string) (Availability, error) {
	own, err := s.ownAvailability(ctx, name)
	if host := hostOf(name); err == nil && host != name {
		var all Availability
		all, err = s.ownAvailability(ctx, host)
		own = own.under(all)
	}
	return own, err
}

// ownAvailability returns the availability of a runner without that of its host. It reads the
// journal if there are new events.
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

// Drain makes a runner finish its job and take no more; Return ends that. Both are idempotent.
func (s *Server) Drain(ctx context.Context, name, why string) error {
	return s.decide(ctx, name, drainedKind, why, func(d Availability) bool { return d.Drained == nil })
}

// Return makes a runner take jobs again. The name of a host means all of its runners.
func (s *Server) Return(ctx context.Context, name string) error {
	var err error
	for _, one := range s.names(name) {
		err = errors.Join(err, s.decide(ctx, one, returnedKind, "", func(d Availability) bool { return !d.Takes() }))
	}
	return err
}

// faultsInARow is how many verdicts in a row must be the runner's fault. They must be about at
// least two kernels, because one kernel can fail on every runner.
const faultsInARow = 3

// Judged records the verdict on a runner's last result: the kernel, and the runner's fault, "" if
// there is none. A runner with several faults in a row is quarantined.
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
	s.faults[name] = nil // counting starts again when the runner is returned
}

func (s *Server) decide(ctx context.Context, name, kind, why string, news func(Availability) bool) error {
	_, written, err := s.write(ctx, name, kind, Decision{Why: why}, news)
	if written {
		s.Log.Info("the state of a runner has changed", "runner", name, "now", kind, "why", why)
		s.endPoll(name)
	}
	return err
}

// write adds an event to a runner's history if it changes something, and returns the state before.
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

// poll returns a context for a runner that waits for a job. It ends when the runner's availability
// changes.
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
