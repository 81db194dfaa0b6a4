package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

const patience = time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// options are those of a queue and of its journal.
type options struct {
	Dir, URL, Name    string
	Replicas          int
	LeadFor, LeaseFor time.Duration
	Limits            scheduler.Limits
	Now               func() time.Time
}

// A world is a queue and the journal that stores it.
type world struct {
	*Queue
	stored *journal.Journal
}

// Close closes both.
func (w *world) Close() error {
	w.Queue.Close()
	return w.stored.Close()
}

func open(t testing.TB, o options) *world {
	t.Helper()
	if o.Dir == "" && o.URL == "" {
		o.Dir = t.TempDir()
	}
	stored, err := journal.Open(testContext(t), journal.Options{Dir: o.Dir, URL: o.URL, Name: o.Name, Replicas: o.Replicas, LeadFor: o.LeadFor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stored.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{queueOf(t, stored, o), stored}
}

func queueOf(t testing.TB, j Journal, o options) *Queue {
	t.Helper()
	q, err := Open(testContext(t), j, Options{LeaseFor: o.LeaseFor, Limits: o.Limits, Now: o.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func next[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-testContext(t).Done():
		t.Fatal("nothing came")
	}
	return v
}
