package journal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func enqueue(t *testing.T, j *Journal, label, id string) {
	t.Helper()
	if err := j.Enqueue(testContext(t), label, Job{ID: id, Payload: []byte("work " + id)}); err != nil {
		t.Fatal(err)
	}
}

func lease(t *testing.T, j *Journal, label, wantID string, wantToken uint64) *Lease {
	t.Helper()
	l, err := j.Lease(testContext(t), label)
	if err != nil {
		t.Fatal(err)
	}
	if l.ID != wantID || l.Token != wantToken || string(l.Payload) != "work "+wantID {
		t.Fatalf("leased %s with token %d and payload %q; want %s with %d", l.ID, l.Token, l.Payload, wantID, wantToken)
	}
	return l
}

func unfinished(t *testing.T, j *Journal) int {
	t.Helper()
	queues, err := j.Queues(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, q := range queues {
		n += q.Waiting + q.Leased
	}
	return n
}

func TestQueue(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	for range 2 {
		enqueue(t, j, "l4", "a") // the second time for nothing
	}
	enqueue(t, j, "l4", "b")
	enqueue(t, j, "h200", "c")
	a := lease(t, j, "l4", "a", 1)
	enqueue(t, j, "l4", "a") // nor while it is worked on

	queues, err := j.Queues(ctx)
	if err != nil || len(queues) != 2 {
		t.Fatal(queues, err)
	}
	h200, l4 := queues[0], queues[1]
	if h200.Label != "h200" || h200.Waiting != 1 || h200.Leased != 0 || l4.Label != "l4" || l4.Waiting != 1 || l4.Leased != 1 {
		t.Errorf("queues: %+v", queues)
	}
	if !l4.Oldest.Before(h200.Oldest) || l4.Oldest.IsZero() {
		t.Errorf("oldest: %v before %v?", l4.Oldest, h200.Oldest)
	}

	if err := a.Done(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Done(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("done twice: %v, want ErrLeaseLost", err)
	}
	b := lease(t, j, "l4", "b", 1)
	if err := b.Release(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Done(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("done after release: %v, want ErrLeaseLost", err)
	}
	if err := lease(t, j, "l4", "b", 2).Done(ctx); err != nil {
		t.Fatal(err)
	}
	if n := unfinished(t, j); n != 1 {
		t.Errorf("%d jobs are left, want 1", n)
	}
	enqueue(t, j, "l4", "a") // gone, so this is a new one
	lease(t, j, "l4", "a", 2)
}

func TestLeaseWaitsAndGivesUp(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { _, err := j.Lease(ctx, "l4"); ended <- err }()
	cancel()
	if err := next(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	got := make(chan *Lease, 1)
	go func() {
		l, err := j.Lease(testContext(t), "l4")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	enqueue(t, j, "l4", "a")
	if l := next(t, got); l == nil || l.ID != "a" {
		t.Errorf("leased %+v", l)
	}
}

func TestExpiredLeaseGoesToAnother(t *testing.T) {
	t.Parallel()
	j := open(t, Options{LeaseFor: 50 * time.Millisecond})
	ctx := testContext(t)
	enqueue(t, j, "l4", "a")
	zombie := lease(t, j, "l4", "a", 1)
	heir := lease(t, j, "l4", "a", 2) // blocks until the first has run out

	for name, act := range map[string]func() error{
		"extend":  func() error { return zombie.Extend(ctx) },
		"done":    func() error { return zombie.Done(ctx) },
		"release": func() error { return zombie.Release(ctx, 0) },
	} {
		if err := act(); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the late %s: %v, want ErrLeaseLost", name, err)
		}
	}
	if n := unfinished(t, j); n != 1 {
		t.Errorf("%d jobs are left after the zombie's efforts, want 1", n)
	}
	if err := heir.Done(ctx); err != nil {
		t.Error(err)
	}
	if n := unfinished(t, j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
}

// A crash between Done's record and its acknowledgement must not bring the job back.
func TestDoneCountsWithoutAcknowledgement(t *testing.T) {
	t.Parallel()
	j := open(t, Options{LeaseFor: 50 * time.Millisecond})
	enqueue(t, j, "l4", "a")
	if err := lease(t, j, "l4", "a", 1).end(testContext(t), finished); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 2)
	go func() {
		if l, err := j.Lease(testContext(t), "l4"); err == nil {
			got <- l.ID
		}
	}()
	ctx := testContext(t)
	for unfinished(t, j) > 0 { // until the lease ran out and the waiting runner tidied up
		if ctx.Err() != nil {
			t.Fatal("the finished job is still there")
		}
	}
	enqueue(t, j, "l4", "b")
	if id := next(t, got); id != "b" {
		t.Errorf("leased %s, want b", id)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	ctx := testContext(t)
	enqueue(t, j, "l4", "waits")
	if ok, err := j.Cancel(ctx, "waits"); err != nil || !ok {
		t.Errorf("cancel a waiting job: %v, %v", ok, err)
	}
	if ok, err := j.Cancel(ctx, "waits"); err != nil || ok {
		t.Errorf("cancel it again: %v, %v", ok, err)
	}

	enqueue(t, j, "l4", "runs")
	l := lease(t, j, "l4", "runs", 1)
	held, stop, err := l.Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if ok, err := j.Cancel(ctx, "runs"); err != nil || !ok {
		t.Errorf("cancel a running job: %v, %v", ok, err)
	}
	next(t, held.Done())
	if cause := context.Cause(held); !errors.Is(cause, ErrCancelled) {
		t.Errorf("the runner was told %v, want ErrCancelled", cause)
	}
	if err := l.Extend(ctx); !errors.Is(err, ErrCancelled) {
		t.Errorf("extend: %v, want ErrCancelled", err)
	}
	if err := l.Done(ctx); !errors.Is(err, ErrCancelled) {
		t.Errorf("done: %v, want ErrCancelled", err)
	}
	if n := unfinished(t, j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
	enqueue(t, j, "l4", "runs") // wanted after all
	if err := lease(t, j, "l4", "runs", 2).Done(ctx); err != nil {
		t.Error(err)
	}
}

func TestHoldKeepsTheLeaseAlive(t *testing.T) {
	t.Parallel()
	j := open(t, Options{LeaseFor: 30 * time.Millisecond})
	ctx := testContext(t)
	beats := make(chan *nats.Msg, 1000)
	if _, err := j.nc.ChanSubscribe("$JS.ACK.JOBS.>", beats); err != nil {
		t.Fatal(err)
	}
	enqueue(t, j, "l4", "a")
	a := lease(t, j, "l4", "a", 1)
	held, stop, err := a.Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // the first answers the watch, the others the clock
		if m := next(t, beats); string(m.Data) != "+WPI" || m.Subject != a.msg.Reply() {
			t.Errorf("%q to %s is not a sign of life", m.Data, m.Subject)
		}
	}
	if held.Err() != nil {
		t.Errorf("the lease ended: %v", context.Cause(held))
	}
	stop()
	if !errors.Is(held.Err(), context.Canceled) {
		t.Error("the context goes on after stop")
	}
	if err := a.Done(ctx); err != nil {
		t.Error(err)
	}
}
