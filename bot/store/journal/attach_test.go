package journal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func leaseTo(t *testing.T, j *Journal, label, holder string) *Lease {
	t.Helper()
	l, err := j.LeaseTo(testContext(t), label, holder)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func attach(t *testing.T, j *Journal, of *Lease, holder string) *Lease {
	t.Helper()
	l, err := j.Attach(testContext(t), of.ID, of.Token, holder)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A runner goes on working while the bot is started again.
func TestAttachAfterReopening(t *testing.T) {
	t.Parallel()
	ctx, dir := testContext(t), t.TempDir()
	j := open(t, Options{Dir: dir})
	enqueue(t, j, "l4", "a")
	enqueue(t, j, "l4", "b")
	a, b := leaseTo(t, j, "l4", "ann"), leaseTo(t, j, "l4", "ann")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	j = open(t, Options{Dir: dir})
	again := attach(t, j, a, "ann")
	if again.Label != "l4" || again.Token != 1 || string(again.Payload) != "work a" {
		t.Errorf("attached to %+v", again)
	}
	beats := make(chan *nats.Msg, 10)
	if _, err := j.nc.ChanSubscribe("$JS.ACK.JOBS.>", beats); err != nil {
		t.Fatal(err)
	}
	if err := again.Extend(ctx); err != nil {
		t.Fatal(err)
	}
	if m := next(t, beats); string(m.Data) != "+WPI" || m.Subject != a.msg.Reply() {
		t.Errorf("%q to %s is not a sign of life", m.Data, m.Subject)
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
	if n := unfinished(t, j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
}

func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	take := func(id string) *Lease {
		enqueue(t, j, "l4", id)
		return leaseTo(t, j, "l4", "ann")
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
	j := open(t, Options{LeaseFor: time.Hour})
	for range 20 {
		ctx, cancel := context.WithCancel(testContext(t))
		got := make(chan *Lease, 1)
		go func() {
			l, _ := j.Lease(ctx, "l4")
			got <- l
		}()
		enqueue(t, j, "l4", "a")
		cancel()
		l := next(t, got)
		if l == nil {
			l = leaseTo(t, j, "l4", "")
		}
		if err := l.Done(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
}
