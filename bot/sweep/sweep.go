// Package sweep decides when the kernels of a default branch are measured again without a push. A sweep compares them with
// the commit of the last sweep. To the rest of the bot it is a change like a push: planned, queued in its own class, judged
// and kept by the same code.
//
// The journal holds decisions: "the sweep that was due then measures this commit". A Sweeper writes the decision first and
// then carries it out, as often as needed, so a crash neither loses nor repeats a sweep. One sweep makes up for all that were
// due while no bot ran.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A Schedule says when which kernels are measured.
type Schedule struct {
	Repository string        // owner/name; "*" is each that no other schedule names
	At         time.Duration // after midnight, UTC
	Every      time.Duration
	Kernels    []string // patterns of their folders; none is all
}

// due is the last time that a sweep should have begun.
func (s Schedule) due(now time.Time) time.Time {
	begin := time.Unix(0, 0).UTC().Add(s.At)
	return begin.Add(now.Sub(begin).Truncate(s.Every))
}

// A Decision says which commit a sweep measures. The journal keeps it forever.
type Decision struct {
	Due    time.Time `json:"due"`
	Repo   string    `json:"repo"`
	Branch string    `json:"branch"`
	Head   string    `json:"head"`
	Base   string    `json:"base,omitempty"` // the head of the sweep before; "" the first time

	Kernels []string `json:"kernels,omitempty"`
}

const sweptKind = "swept"

// subject is a repository's in the journal. No change has such a name.
func subject(repo int64) string { return fmt.Sprintf("sweeps-%d", repo) }

// A Target is what a repository's default branch is now.
type Target struct{ Repo, Branch, Head string } // Head is "" where nobody has pushed yet

// A Journal keeps decisions.
type Journal interface {
	Last(ctx context.Context, name string) (journal.Event, error)
	Append(ctx context.Context, name string, after uint64, kind string, event any) (uint64, error)
}

// A Sweeper begins the sweeps that are due.
type Sweeper struct {
	Schedules []Schedule
	Interval  time.Duration // between looks at the clock
	Timeout   time.Duration // of beginning one sweep
	Journal   Journal

	Repositories func() map[int64]string // names of those that can be swept now, by number
	Find         func(ctx context.Context, name string) (Target, error)
	Begin        func(ctx context.Context, repo int64, d Decision) error // may be called again for the same decision

	Log *slog.Logger
	Now func() time.Time
}

// Run begins sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	if len(s.Schedules) == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	done := map[int64]time.Time{} // the due times that need no more work, by repository
	for {
		names := s.Repositories()
		for _, repo := range slices.Sorted(maps.Keys(names)) {
			schedule, ok := s.scheduleOf(names[repo])
			if !ok || done[repo].Equal(schedule.due(s.Now())) {
				continue
			}
			due, err := s.sweep(ctx, schedule, repo, names[repo])
			if err == nil {
				done[repo] = due
			} else if ctx.Err() == nil {
				s.Log.Warn("a sweep could not be begun; it is tried again soon", "repo", names[repo], "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// scheduleOf is the one for a repository.
func (s *Sweeper) scheduleOf(repo string) (found Schedule, ok bool) {
	for _, one := range s.Schedules {
		if strings.EqualFold(one.Repository, repo) {
			return one, true
		}
		if one.Repository == "*" {
			found, ok = one, true
		}
	}
	return found, ok
}

// sweep decides on the sweep that is due, unless that was done before, and begins it. A commit that was swept before is not
// measured again.
func (s *Sweeper) sweep(ctx context.Context, schedule Schedule, repo int64, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	due := schedule.due(s.Now())
	last, seq, err := s.last(ctx, repo)
	if err != nil {
		return due, err
	}
	if last.Due.Before(due) {
		target, err := s.Find(ctx, name)
		if err != nil {
			return due, err
		}
		next := Decision{Due: due, Repo: target.Repo, Branch: target.Branch, Head: target.Head, Base: last.Head, Kernels: schedule.Kernels}
		if next.Head == "" {
			next.Head = next.Base
		}
		if _, err := s.Journal.Append(ctx, subject(repo), seq, sweptKind, next); err != nil {
			return due, fmt.Errorf("noting a sweep of %s: %w", name, err)
		}
		last = next
	}
	if last.Head == "" || last.Head == last.Base {
		return due, nil
	}
	return due, s.Begin(ctx, repo, last)
}

// last is the newest decision on a repository; the zero one if there is none.
func (s *Sweeper) last(ctx context.Context, repo int64) (last Decision, seq uint64, err error) {
	e, err := s.Journal.Last(ctx, subject(repo))
	if errors.Is(err, journal.ErrNotFound) {
		return Decision{}, 0, nil
	}
	if err == nil {
		err = e.Writer.Decode(e.Kind, e.Data, &last)
	}
	if err != nil {
		return Decision{}, 0, fmt.Errorf("reading the last sweep of repository %d: %w", repo, err)
	}
	return last, e.Seq, nil
}
