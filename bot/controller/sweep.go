package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A sweep measures the kernels of a repository's default branch at a time of day, against how they were at the last sweep,
// whether or not anybody has touched them. It is a change like a push: planned, queued (in the class of its own), judged and
// kept by the same code.
//
// What the journal has of a repository's sweeps are decisions: that the one which was due then is of this commit. A decision
// is written first and carried out after that, as often as it takes: so a crash neither loses nor repeats a sweep. Times that
// passed while no bot was there are made up for by one sweep.

// A Sweep says when which kernels are measured.
type Sweep struct {
	Repository string        // owner/name; "*" is each that no other sweep names
	At         time.Duration // after midnight, UTC
	Every      time.Duration
	Kernels    []string // patterns of their folders; none is all
}

// due is the last time that the sweep should have begun.
func (s Sweep) due(now time.Time) time.Time {
	begin := time.Unix(0, 0).UTC().Add(s.At)
	return begin.Add(now.Sub(begin).Truncate(s.Every))
}

// sweepOf is the one that is for a repository.
func (k *Controller) sweepOf(repo string) (found Sweep, ok bool) {
	for _, s := range k.Sweeps {
		if strings.EqualFold(s.Repository, repo) {
			return s, true
		}
		if s.Repository == "*" {
			found, ok = s, true
		}
	}
	return found, ok
}

// swept is the decision on one sweep, in the journal for good.
type swept struct {
	Due    time.Time `json:"due"`
	Repo   string    `json:"repo"`
	Branch string    `json:"branch"`
	Head   string    `json:"head"`
	Base   string    `json:"base,omitempty"` // the head of the one before; "" the first time

	Kernels []string `json:"kernels,omitempty"`
}

const sweptKind = "swept"

// sweepsRun is a repository's subject in the journal. No change is called so.
func sweepsRun(repo int64) string { return fmt.Sprintf("sweeps-%d", repo) }

// sweepLoop looks whether a sweep is due.
func (k *Controller) sweepLoop(ctx context.Context) error {
	if len(k.Sweeps) == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(k.SweepLook)
	defer tick.Stop()
	done := map[int64]time.Time{} // the due times that nothing is left to do of, by repository
	for {
		k.mu.Lock()
		names := maps.Clone(k.names)
		k.mu.Unlock()
		for _, repo := range slices.Sorted(maps.Keys(names)) {
			s, ok := k.sweepOf(names[repo])
			if !ok || k.isSuspended(repo) || done[repo].Equal(s.due(k.Now())) {
				continue
			}
			due, err := k.sweep(ctx, s, repo, names[repo])
			if err == nil {
				done[repo] = due
			} else if ctx.Err() == nil {
				k.Log.Warn("a sweep could not be begun; it is tried again soon", "repo", names[repo], "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sweep decides on the one that is due, unless that was done before, and has what was decided carried out.
func (k *Controller) sweep(ctx context.Context, s Sweep, repo int64, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	due := s.due(k.Now())
	last, seq, err := k.lastSweep(ctx, repo)
	if err != nil {
		return due, err
	}
	if last.Due.Before(due) {
		next := swept{Due: due, Base: last.Head, Kernels: s.Kernels}
		if err := k.findTarget(ctx, name, &next); err != nil {
			return due, err
		}
		if _, err := k.Journal.Append(ctx, sweepsRun(repo), seq, sweptKind, next); err != nil {
			return due, fmt.Errorf("noting a sweep of %s: %w", name, err)
		}
		last = next
	}
	return due, k.recordSweep(ctx, repo, last)
}

// lastSweep is the newest decision; of none the zero one.
func (k *Controller) lastSweep(ctx context.Context, repo int64) (last swept, seq uint64, err error) {
	e, err := k.Journal.Last(ctx, sweepsRun(repo))
	if errors.Is(err, journal.ErrNotFound) {
		return swept{}, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Data, &last)
	}
	if err != nil {
		return swept{}, 0, fmt.Errorf("reading the last sweep of repository %d: %w", repo, err)
	}
	return last, e.Seq, nil
}

// findTarget finds what is to be measured.
func (k *Controller) findTarget(ctx context.Context, name string, s *swept) error {
	r, err := k.GitHub.Repository(ctx, name)
	if err != nil {
		return err
	}
	s.Repo, s.Branch = r.FullName, r.DefaultBranch
	s.Head, err = k.Planner.Tip(ctx, r.FullName, r.DefaultBranch)
	if errors.Is(err, planner.ErrMoved) { // nobody has pushed yet
		s.Head, err = s.Base, nil
	}
	return err
}

// recordSweep makes a change of a decision. A commit that was swept before is not measured again.
func (k *Controller) recordSweep(ctx context.Context, repo int64, s swept) error {
	if s.Head == "" || s.Head == s.Base {
		return nil
	}
	id := change.ID{Kind: change.Sweep, Repo: repo, SHA: s.Head}
	news := false
	_, err := k.states.update(ctx, id, func(now *change.State) (change.Event, error) {
		if news = now.Seq == 0; !news {
			return nil, nil
		}
		return change.Seen{Facts: change.Facts{
			Repo: s.Repo, DefaultBranch: s.Branch, Title: s.Branch, Open: true, Head: s.Head, Base: s.Branch, BaseSHA: s.Base, Kernels: s.Kernels,
		}}, nil
	})
	if err == nil && news {
		k.Log.Info("a sweep begins", "repo", s.Repo, "due", s.Due, "head", s.Head, "since", s.Base)
		k.enqueueChange(id)
	}
	return err
}
