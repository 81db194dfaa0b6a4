package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// An event has one time. The bot that writes it and a bot that reads it later agree on the state, whatever the clock of the
// journal's server says: a review counts only if it is newer than the rules, and that must not depend on a restart.
func TestEventsHaveOneClock(t *testing.T) {
	j, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	clock := time.Date(2020, 1, 2, 3, 4, 5, 678901234, time.UTC)
	now := func() time.Time { clock = clock.Add(time.Minute); return clock }
	s := newStates(j, now, func(int64) string { return "" })
	id := change.ID{Kind: change.Pull, Repo: 1, Number: 7}
	facts := change.Facts{Repo: "o/r", Open: true, Head: "h", Base: "main"}
	plan := func(rules string) change.Event {
		return change.Planned{Plan: change.Plan{Key: facts.PlanKey(), Head: "h", Rules: rules, Kernels: []change.Kernel{{KernelSpec: change.KernelSpec{Name: "k", Folder: "kernels/k"}}}}}
	}
	var applied *change.State
	for _, event := range []change.Event{change.Seen{Facts: facts}, plan("before"), plan("after"), change.Asked{ID: "comment-1"}} {
		if applied, err = s.update(t.Context(), id, func(*change.State) (change.Event, error) { return event, nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.clear()
	replayed, err := s.load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(applied, replayed, cmpopts.IgnoreUnexported(change.Plan{})); diff != "" {
		t.Errorf("the state that was applied (-) is not the one that is replayed (+):\n%s", diff)
	}
	if want := time.Date(2020, 1, 2, 3, 7, 5, 678901234, time.UTC); !replayed.RulesSince.Equal(want) {
		t.Errorf("the rules are others since %v, want %v", replayed.RulesSince, want)
	}
	last, err := j.Last(t.Context(), id.String())
	if err != nil || !last.At.Equal(clock) {
		t.Errorf("the journal says that the last event was at %v (%v), want %v", last.At, err, clock)
	}
}
