package journal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendRefusesTheLate(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	first, err := j.Append(ctx, "r", 0, "queued", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(ctx, "other", 0, "queued", nil); err != nil {
		t.Fatal(err)
	}
	second, err := j.Append(ctx, "r", first, "leased", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, expect := range map[string]uint64{"zombie": first, "as new": 0, "from the future": second + 1} {
		if _, err := j.Append(ctx, "r", expect, "measured", nil); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
	}
	if last, err := j.Last(ctx, "r"); err != nil || last.Seq != second || last.Kind != "leased" {
		t.Errorf("last is %+v, %v", last, err)
	}
	if _, err := j.Last(ctx, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("last of no run: %v, want ErrNotFound", err)
	}
	if _, err := j.Append(ctx, "a.b", 0, "queued", nil); err == nil {
		t.Error("a run's name may not hold a dot")
	}
}

func TestReplayAndFollow(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	write := func(from, to int) {
		for i := from; i <= to; i++ {
			if _, err := j.Append(ctx, fmt.Sprint("run", i), 0, "queued", i); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	collect := func(e Event) error { got = append(got, fmt.Sprint(e.Seq, e.Run, e.Kind, string(e.Data))); return nil }

	if last, err := j.Replay(ctx, 0, collect); err != nil || last != 0 || got != nil {
		t.Fatal("an empty journal:", last, err, got)
	}
	write(1, 5)
	last, err := j.Replay(ctx, 3, collect)
	if diff := cmp.Diff([]string{"4run4queued4", "5run5queued5"}, got); err != nil || last != 5 || diff != "" {
		t.Fatal("from the middle:", last, err, diff)
	}
	if last, err := j.Replay(ctx, 5, collect); err != nil || last != 5 || len(got) != 2 {
		t.Fatal("from the end:", last, err, got)
	}
	broken := errors.New("broken")
	last, err = j.Replay(ctx, 0, func(e Event) error {
		if e.Seq == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || last != 2 {
		t.Errorf("a projection that fails at 3: last %d, %v", last, err)
	}
	if _, err := j.Append(ctx, "run2", 2, "passed", nil); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	if last, err := j.ReplayRun(ctx, "run2", func(e Event) error { kinds = append(kinds, e.Kind); return nil }); err != nil || last != 6 {
		t.Error("one run:", last, err)
	}
	if diff := cmp.Diff([]string{"queued", "passed"}, kinds); diff != "" {
		t.Error("one run:", diff)
	}
	kinds = nil
	if last, err := j.ReplayRunAfter(ctx, "run2", 2, func(e Event) error { kinds = append(kinds, fmt.Sprint(e.Seq)); return nil }); err != nil || last != 6 {
		t.Errorf("the run after event 2 ends at %d: %v", last, err)
	}
	if diff := cmp.Diff([]string{"6"}, kinds); diff != "" {
		t.Error("one run from the middle:", diff)
	}
	if last, err := j.ReplayRun(ctx, "nobody", collect); err != nil || last != 0 {
		t.Error("no run:", last, err)
	}

	follow, cancel := context.WithCancel(ctx)
	seqs, ended := make(chan uint64, 10), make(chan error, 1)
	go func() { ended <- j.Follow(follow, 5, func(e Event) error { seqs <- e.Seq; return nil }) }()
	if seq := next(t, seqs); seq != 6 {
		t.Errorf("followed from %d, want 6", seq)
	}
	write(7, 7)
	if seq := next(t, seqs); seq != 7 {
		t.Errorf("then %d, want 7", seq)
	}
	cancel()
	if err := next(t, ended); err != nil {
		t.Error(err)
	}
}

// The server allows 1,000 consumers of a stream: looking at a run leaves none behind, and neither does anything else that
// is done often.
func TestLookingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	last := uint64(0)
	for range 3 {
		var err error
		if last, err = j.Append(ctx, "r", last, "queued", nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1100 {
		n := 0
		if _, err := j.ReplayRun(ctx, "r", func(Event) error { n++; return nil }); err != nil || n != 3 {
			t.Fatalf("look %d: %d events, %v", i+1, n, err)
		}
	}
	for range 40 {
		var err error
		if last, err = j.Append(ctx, "r", last, "queued", nil); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	for range 20 {
		if _, err := j.ReplayRun(ctx, "r", func(Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Replay(ctx, 0, func(e Event) error {
			if e.Seq == last {
				return stop
			}
			return nil
		}); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if _, err := j.Replay(ctx, 0, func(Event) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if err := j.Follow(ctx, 0, func(Event) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if _, err := j.Dead(ctx); err != nil {
			t.Fatal(err)
		}
	}
	soon, stopped := context.WithTimeout(ctx, missedAfter*9/10) // before the server would miss their readers
	defer stopped()
	for name := range j.js.StreamNames(ctx).Name() {
		for left := 1; left > 0; {
			stream, err := j.js.Stream(soon, name)
			if err != nil {
				t.Fatalf("%s still has %d consumers: %v", name, left, err)
			}
			left = stream.CachedInfo().State.Consumers
		}
	}
}

// What is longer than a page is read whole and in order.
func TestLongRun(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	const n = 2*followAhead + 1
	last := uint64(0)
	for i := range n {
		var err error
		if last, err = j.Append(ctx, "r", last, "queued", i); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	got, err := j.ReplayRun(ctx, "r", func(e Event) error {
		if string(e.Data) != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, e.Data)
		}
		i++
		return nil
	})
	if err != nil || i != n || got != last {
		t.Errorf("%d events to %d, %v", i, got, err)
	}
	i = 0
	enough := errors.New("enough")
	err = j.Follow(ctx, 0, func(e Event) error {
		if i++; e.Seq != uint64(i) {
			t.Errorf("event %d has the sequence %d", i, e.Seq)
		}
		if i == n {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("followed %d events: %v", i, err)
	}
}
