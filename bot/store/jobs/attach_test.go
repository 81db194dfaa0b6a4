package jobs

import (
	"context"
	"errors"
	"testing"
	"time"
)

func attach(t *testing.T, j *world, of *Lease, holder string) *Lease {
	t.Helper()
	l, err := j.Attach(testContext(t), of.ID, of.Token, holder)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A runner goes on working while the bot is started again, and has its whole lease from then on.
func TestAttachAfterReopening(t *testing.T) {
	t.Parallel()
	ctx, o := testContext(t), options{Dir: t.TempDir()}
	j := open(t, o)
	enqueue(t, j, "a", "l4")
	enqueue(t, j, "b", "l4")
	a, b := lease(t, j, "l4", "a", 1), lease(t, j, "l4", "b", 1)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	j = open(t, o)
	again := attach(t, j, a, "ann")
	if again.Label != "l4" || again.Token != 1 || again.Bundle != "bundle of a" {
		t.Errorf("attached to %+v", again)
	}
	before := j.line.statuses()
	if err := again.Extend(ctx); err != nil {
		t.Fatal(err)
	}
	if after := j.line.statuses(); !after[0].Free.After(before[0].Free) || after[1].Free != before[1].Free {
		t.Errorf("extended from %v to %v, and the other from %v to %v", before[0].Free, after[0].Free, before[1].Free, after[1].Free)
	}
	if err := again.Done(ctx); err != nil {
		t.Fatal(err)
	}
	if err := attach(t, j, b, "ann").Release(ctx, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if l := lease(t, j, "l4", "b", 2); l.Done(ctx) != nil {
		t.Error("the released job cannot be finished")
	}
	if n := unfinished(j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
}

func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx := testContext(t)
	take := func(id string) *Lease {
		enqueue(t, j, id, "l4")
		return lease(t, j, "l4", id, 1)
	}
	held, gone, back, off := take("held"), take("gone"), take("back"), take("off")
	if err := errors.Join(gone.Done(ctx), back.Release(ctx, time.Hour)); err != nil {
		t.Fatal(err)
	}
	if ok, err := j.Cancel(ctx, "off"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	tests := []struct {
		name, id string
		token    uint64
		holder   string
		want     error
	}{
		{"its holder", "held", held.Token, "ann", nil},
		{"somebody else", "held", held.Token, "bob", ErrLeaseLost},
		{"nobody", "held", held.Token, "", ErrLeaseLost},
		{"an old token", "held", held.Token - 1, "ann", ErrLeaseLost},
		{"a token to come", "held", held.Token + 1, "ann", ErrLeaseLost},
		{"no such job", "none", 0, "ann", ErrLeaseLost},
		{"a finished job", "gone", gone.Token, "ann", ErrFinished},
		{"a released job", "back", back.Token, "ann", ErrLeaseLost},
		{"a cancelled job", "off", off.Token, "ann", ErrCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := j.Attach(ctx, tt.id, tt.token, tt.holder); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	if _, err := j.Attach(ctx, "a.*", 1, "ann"); err == nil {
		t.Error("an id that is a pattern was taken")
	}
}

// A job that comes in the very moment in which a runner gives up waiting is handed to that one or to the next, at once: it
// does not lie about until a lease runs out.
func TestLeaseEndsWithItsContextCleanly(t *testing.T) {
	t.Parallel()
	j := open(t, options{LeaseFor: time.Hour})
	for range 100 {
		ctx, cancel := context.WithCancel(testContext(t))
		got := make(chan *Lease, 1)
		go func() {
			l, _ := j.Lease(ctx, "bob", "l4")
			got <- l
		}()
		go cancel()
		enqueue(t, j, "a", "l4")
		l := next(t, got)
		if l == nil {
			var err error
			if l, err = j.Lease(testContext(t), "ann", "l4"); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Done(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}
