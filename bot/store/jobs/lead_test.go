package jobs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// external is a server that several processes share.
func external(t *testing.T) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return srv
}

// leading has a journal campaign; led gets a value whenever it leads. stop ends the campaign.
func leading(t *testing.T, j *journal.Journal) (led <-chan bool, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	begun, ended := make(chan bool, 16), make(chan error, 1)
	go func() {
		ended <- j.Campaign(ctx, func(ctx context.Context) error {
			begun <- true
			<-ctx.Done()
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return begun, stop
}

func job(id, label string) Job {
	return Job{Job: scheduler.Job{ID: id, Labels: []string{label}}, Bundle: "b"}
}

// A new leader knows the jobs and continues their leases. One that stands by does nothing about jobs, and a runner that waits
// where the lead ends is told so.
func TestLeadPassesOn(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	a, b := open(t, options{URL: url, Name: "a", LeadFor: 12 * time.Second}), open(t, options{URL: url, Name: "b", LeadFor: 12 * time.Second})
	ctx := testContext(t)
	ledA, stopA := leading(t, a.stored)
	next(t, ledA)
	ledB, _ := leading(t, b.stored)
	for b.stored.Leads() || func() bool { _, err := b.stored.Term(); return err == nil }() {
		if ctx.Err() != nil {
			t.Fatal("the second one does not stand by")
		}
	}
	if err := a.Enqueue(ctx, job("job", "cpu")); err != nil {
		t.Fatal(err)
	}
	held, err := a.Lease(ctx, "runner", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"enqueue": func() error { return b.Enqueue(ctx, job("other", "cpu")) },
		"lease":   func() error { _, err := b.Lease(ctx, "runner", "cpu"); return err },
		"attach":  func() error { _, err := b.Attach(ctx, "job", held.Token, "runner"); return err },
		"cancel":  func() error { _, err := b.Cancel(ctx, "job"); return err },
	} {
		if err := do(); !errors.Is(err, journal.ErrNotLeading) {
			t.Errorf("%s by one that stands by: %v", name, err)
		}
	}
	before, refused := waiting(a), make(chan error, 1)
	go func() { _, err := a.Lease(ctx, "another", "cpu"); refused <- err }()
	for waiting(a) == before {
		if ctx.Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	stopA()
	if err := next(t, refused); !errors.Is(err, journal.ErrNotLeading) {
		t.Errorf("a runner that waited where the lead was given back: %v", err)
	}
	next(t, ledB)
	got, err := b.Attach(ctx, "job", held.Token, "runner")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(got.Extend(ctx), got.Done(ctx)); err != nil {
		t.Error(err)
	}
}

// A believer is the journal of a process whose clocks stood still: it believes that it leads in term 1, until it reads a
// record of a newer term.
type believer struct {
	*journal.Journal
	mu     sync.Mutex
	newest uint64
}

func (b *believer) Term() (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.newest > 1 {
		return 0, journal.ErrNotLeading
	}
	return 1, nil
}

func (b *believer) ObserveTerm(term uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest = max(b.newest, term)
}

func (b *believer) WhileLeading(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, cancel, nil
}

func (b *believer) OnElection(func(context.Context) error, func()) {}

// A process whose clocks stood still believes that it leads. It cannot change a job that its successor has touched.
func TestFence(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	first, second := open(t, options{URL: url, Name: "a"}), open(t, options{URL: url, Name: "b", LeadFor: 12 * time.Second})
	ctx := testContext(t)
	old := &believer{Journal: first.stored}
	a := queueOf(t, old, options{})
	a.loaded.Store(true)
	if err := a.Enqueue(ctx, job("job", "cpu")); err != nil {
		t.Fatal(err)
	}
	ledA, stop := leading(t, first.stored) // term 1
	next(t, ledA)
	stop()
	led, _ := leading(t, second.stored) // term 2
	next(t, led)
	held, err := second.Lease(ctx, "runner", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"lease":  func() error { _, err := a.Lease(ctx, "thief", "cpu"); return err },
		"cancel": func() error { _, err := a.Cancel(ctx, "job"); return err },
		"attach": func() error { _, err := a.Attach(ctx, "job", held.Token, "runner"); return err },
	} {
		old.mu.Lock()
		old.newest = 0
		old.mu.Unlock()
		if err := do(); !errors.Is(err, journal.ErrNotLeading) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := held.Extend(ctx); err != nil {
		t.Errorf("the successor's lease: %v", err)
	}
}

// Between the election and the end of reading the jobs, nobody is told that a job is gone.
func TestJobsAreReadBeforeTheyAreMissed(t *testing.T) {
	t.Parallel()
	w := open(t, options{})
	ctx := testContext(t)
	enqueue(t, w, "job", "cpu")
	held := lease(t, w, "cpu", "job", 1)
	q := queueOf(t, &believer{Journal: w.stored}, options{})
	q.deposed()
	if _, err := q.Attach(ctx, "job", held.Token, "ann"); !errors.Is(err, journal.ErrNotLeading) {
		t.Errorf("attach before the jobs were read: %v", err)
	}
	if _, err := q.Cancel(ctx, "job"); !errors.Is(err, journal.ErrNotLeading) {
		t.Errorf("cancel before the jobs were read: %v", err)
	}
	if err := q.elected(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Attach(ctx, "job", held.Token, "ann"); err != nil {
		t.Errorf("attach after the jobs were read: %v", err)
	}
}
