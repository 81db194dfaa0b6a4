// Package sweep decides when the kernels of a default branch are measured again without a push. A sweep compares them with
// the commit of the last sweep; a watch compares them with the last release or with the best state of each kernel. The rest of
// the bot treats both like a push: the same code plans, queues, judges and stores them. They have their own class in the queue.
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
	"github.com/kernelgate/kernelgate/bot/watch"
)

// A Schedule says when which kernels are measured.
type Schedule struct {
	Repository string        // owner/name; "*" is each that no other schedule names
	At         time.Duration // after midnight, UTC
	Every      time.Duration
	Kernels    []string // patterns of their folders; none is all
	Watch      *Watch   // nil for a sweep
}

// A Watch says what a watch compares with.
type Watch struct {
	Against watch.Against
	Slower  float64 // smallest slowdown that counts: 0.01 is 1 %
}

// due is the last time that a sweep should have begun.
func (s Schedule) due(now time.Time) time.Time {
	begin := time.Unix(0, 0).UTC().Add(s.At)
	return begin.Add(now.Sub(begin).Truncate(s.Every))
}

// A Decision says which commit a sweep or a watch measures. The journal keeps it forever.
type Decision struct {
	Due    time.Time `json:"due"`
	Repo   string    `json:"repo"`
	Branch string    `json:"branch"`
	Head   string    `json:"head"`
	Base   string    `json:"base,omitempty"` // the head of the sweep before, or the release; "" if there is none

	Kernels []string `json:"kernels,omitempty"`

	// Only a watch has the fields below.
	Against watch.Against `json:"against,omitempty"`
	Tag     string        `json:"tag,omitempty"`      // of the release
	MovedTo string        `json:"moved_to,omitempty"` // the commit that the tag has now, if somebody moved it
	Since   time.Time     `json:"since,omitzero"`     // when the first watch found this release
	// Releases has the commit of each release when a watch first found it, by tag.
	Releases map[string]string `json:"releases,omitempty"`
	Slower   float64           `json:"slower,omitempty"`
	// Replaces is the previous watch. The bot gives up everything that it has not measured yet.
	Replaces *Replaced `json:"replaces,omitempty"`
}

// Replaced names an earlier watch.
type Replaced struct {
	Head string    `json:"head"`
	Due  time.Time `json:"due"`
}

// measures tells whether there is something to measure. A commit that was swept before is not measured again. A watch
// measures the same commit again, because compilers and drivers change.
func (d Decision) measures() bool {
	switch {
	case d.Head == "":
		return false
	case d.Against == watch.Release:
		return d.Base != ""
	}
	return d.Against == watch.Best || d.Head != d.Base
}

// subject is the subject of a repository's decisions in the journal, and kind is their kind of event. No change has such a
// subject.
func (s *Sweeper) subject(repo int64) string {
	if s.Watches {
		return fmt.Sprintf("watches-%d", repo)
	}
	return fmt.Sprintf("sweeps-%d", repo)
}

func (s *Sweeper) kind() string {
	if s.Watches {
		return "watch_due"
	}
	return "swept"
}

// A Target is what a repository's default branch is now.
type Target struct {
	Repo, Branch, Head string // Head is "" where nobody has pushed yet
	ID                 int64  // the number of the repository that has the name
	Base, Tag          string // the release that a watch compares with; "" if there is none
	MovedTo            string // the commit that the tag has now, if somebody moved it
}

// A Journal keeps decisions.
type Journal interface {
	Last(ctx context.Context, name string) (journal.Event, error)
	Append(ctx context.Context, name string, after uint64, kind string, event any) (uint64, error)
}

// A Sweeper starts the sweeps that are due, or the watches that are due.
type Sweeper struct {
	Schedules []Schedule
	Watches   bool          // Schedules are those of watches
	Interval  time.Duration // between looks at the clock
	Timeout   time.Duration // of beginning one sweep
	Journal   Journal

	Repositories func() map[int64]string // names of those that can be swept now, by number
	Find         func(ctx context.Context, name string, s Schedule, last Decision) (Target, error)
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
				s.Log.Warn("cannot start a sweep or a watch; the bot tries again soon", "repo", names[repo], "err", err)
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

// sweep decides on the sweep or the watch that is due, unless the journal has this decision already. Then it starts it.
func (s *Sweeper) sweep(ctx context.Context, schedule Schedule, repo int64, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	due := schedule.due(s.Now())
	last, seq, err := s.last(ctx, repo)
	if err != nil {
		return due, err
	}
	if last.Due.Before(due) {
		target, err := s.Find(ctx, name, schedule, last)
		if err != nil {
			return due, err
		}
		if target.ID != repo { // the name went to a different repository, and the bot has not learned the new name yet
			return due, fmt.Errorf("repository %d does not have the name %s any more: repository %d has it", repo, name, target.ID)
		}
		next := decide(schedule, due, target, last)
		if _, err := s.Journal.Append(ctx, s.subject(repo), seq, s.kind(), next); err != nil {
			return due, fmt.Errorf("noting a sweep of %s: %w", name, err)
		}
		last = next
	}
	if !last.measures() {
		if last.Against == watch.Release && last.Head != "" {
			s.Log.Warn("a watch has no release to compare with: the default branch contains no tag with a version, such as v1.2.0, and no annotated tag", "repo", name)
		}
		return due, nil
	}
	return due, s.Begin(ctx, repo, last)
}

// decide returns the decision for a due time. The last decision tells what to compare with or to replace.
func decide(schedule Schedule, due time.Time, target Target, last Decision) Decision {
	next := Decision{Due: due, Repo: target.Repo, Branch: target.Branch, Head: target.Head, Kernels: schedule.Kernels}
	if w := schedule.Watch; w != nil {
		next.Base, next.Tag, next.MovedTo, next.Against, next.Slower = target.Base, target.Tag, target.MovedTo, w.Against, w.Slower
		if next.Since = due; last.Base == next.Base && !last.Since.IsZero() {
			next.Since = last.Since
		}
		next.Releases = maps.Clone(last.Releases)
		if target.Tag != "" {
			if next.Releases == nil {
				next.Releases = map[string]string{}
			}
			next.Releases[target.Tag] = target.Base
		}
		if last.measures() {
			next.Replaces = &Replaced{Head: last.Head, Due: last.Due}
		}
		return next
	}
	next.Base = last.Head
	if next.Head == "" {
		next.Head = next.Base
	}
	return next
}

// last is the newest decision on a repository; the zero one if there is none.
func (s *Sweeper) last(ctx context.Context, repo int64) (last Decision, seq uint64, err error) {
	e, err := s.Journal.Last(ctx, s.subject(repo))
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
