package journal

import (
	"context"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"
)

// health: a server that is gone is missed in every stream, and back when it is.
func (c *cluster) health(t *testing.T) {
	j := c.open(t, Options{Replicas: 3})
	await := func(what string, ok func(Copies) bool) {
		t.Helper()
		ctx := testContext(t)
		for {
			all, err := j.Health(ctx)
			good := err == nil && len(all) == 3
			for _, s := range all {
				good = good && ok(s)
			}
			if good {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %+v, %v", what, all, err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	whole := func(s Copies) bool { return s.Current == 3 && s.Behind+s.Away == 0 }
	await("all are there", whole)
	c.Kill(2)
	await("one is gone", func(s Copies) bool { return s.Current == 2 && s.Behind+s.Away == 1 })
	c.Start(2)
	await("it is back", whole)
}

// Unhandled is the oldest delivery that was neither handled nor given up, whoever asks.
func TestUnhandled(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{Dir: t.TempDir(), Retry: []time.Duration{time.Hour}})
	since := func() time.Time {
		t.Helper()
		at, err := j.Unhandled(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if at := since(); !at.IsZero() {
		t.Errorf("there is none, and it came at %v", at)
	}
	before := time.Now().Add(-time.Millisecond)
	for _, id := range []string{"a", "b"} {
		if _, err := j.Accept(ctx, webhook.Delivery{ID: id, Event: "push", Received: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	first := since()
	if first.Before(before) {
		t.Errorf("the oldest came at %v, and nothing was there at %v", first, before)
	}
	handled := make(chan string, 2)
	process := func(fails string) (end func()) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = j.Process(ctx, func(_ context.Context, d webhook.Delivery) error {
				handled <- d.ID
				if d.ID == fails {
					return context.DeadlineExceeded
				}
				return nil
			})
		}()
		return func() { cancel(); <-ended }
	}
	end := process("b")
	<-handled
	<-handled
	end()
	second := since()
	if !second.After(first) {
		t.Errorf("with the second delivery failed, the oldest came at %v; the first came at %v", second, first)
	}
}
