package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// leading has a journal lead, or wait for it. Each lead's context comes through led; stop ends it, and waits.
func leading(t *testing.T, j *Journal) (led <-chan context.Context, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	begun, ended := make(chan context.Context, 16), make(chan error, 1)
	go func() {
		ended <- j.Campaign(ctx, func(ctx context.Context) error {
			begun <- ctx
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

// believe makes a process that has lost the lead believe that it has it: as one whose clocks stood still.
func believe(j *Journal, epoch uint64) {
	l := &j.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.sent, l.lasts, l.loaded = epoch, time.Now(), time.Hour, true
	l.led, l.lost = context.WithCancelCause(context.Background())
}

func (j *Journal) epoch() uint64 {
	j.lead.mu.Lock()
	defer j.lead.mu.Unlock()
	return j.lead.epoch
}

// One that gives the lead back has a successor at once, who knows the jobs and goes on with their leases. Deliveries are
// accepted by both, and processed by whoever leads.
func TestLeadPassesOn(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	open := func(name string) *Journal { return open(t, Options{URL: url, Name: name, LeadFor: 12 * time.Second}) }
	a, b := open("a"), open("b")
	ctx := testContext(t)
	ledA, stopA := leading(t, a)
	next(t, ledA)
	ledB, _ := leading(t, b)
	eventually(t, "the other one knows who leads", func() bool { who, _ := b.Leader(); return !b.Leads() && who == "a" })

	if err := a.Enqueue(ctx, Job{Job: scheduler.Job{ID: "job", Labels: []string{"cpu"}}, Bundle: "b"}); err != nil {
		t.Fatal(err)
	}
	lease, err := a.Lease(ctx, "runner", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"append": func() error { _, err := b.Append(ctx, "run", 0, "kind", 1); return err },
		"enqueue": func() error {
			return b.Enqueue(ctx, Job{Job: scheduler.Job{ID: "other", Labels: []string{"cpu"}}, Bundle: "b"})
		},
		"lease":  func() error { _, err := b.Lease(ctx, "runner", "cpu"); return err },
		"attach": func() error { _, err := b.Attach(ctx, "job", lease.Token, "runner"); return err },
		"hold":   func() error { return b.EnsureLeader(ctx) },
	} {
		if err := do(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%s by one that stands by: %v", name, err)
		}
	}
	for _, j := range []*Journal{a, b} {
		if fresh, err := j.Accept(ctx, webhook.Delivery{ID: "by-" + j.opt.Name, Event: "push"}); err != nil || !fresh {
			t.Errorf("accept by %s: %v, %v", j.opt.Name, fresh, err)
		}
	}
	waiting := make(chan error, 1)
	go func() { _, err := a.Lease(ctx, "another", "cpu"); waiting <- err }()
	eventually(t, "a runner waits", func() bool { a.queue.mu.Lock(); defer a.queue.mu.Unlock(); return len(a.queue.waiting) == 1 })
	stopA()
	if err := next(t, waiting); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a runner that waited where the lead was given back: %v", err)
	}
	next(t, ledB)
	if b.epoch() != 2 {
		t.Errorf("the second leads with epoch %d", b.epoch())
	}
	got, err := b.Attach(ctx, "job", lease.Token, "runner")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(got.Extend(ctx), got.Done(ctx)); err != nil {
		t.Error(err)
	}
	handled := make(chan string, 2)
	processing(t, b, func(_ context.Context, d webhook.Delivery) error { handled <- d.ID; return nil })
	if first, second := next(t, handled), next(t, handled); first == second || !strings.HasPrefix(first, "by-") {
		t.Errorf("handled %s and %s", first, second)
	}
}

// One that cannot say that it leads loses the lead by its own clocks, before another takes it. When it is back it stands by.
func TestLeadIsLostInTime(t *testing.T) {
	t.Parallel()
	srv := external(t)
	p := newProxy(t, srv)
	const leadFor = 2 * time.Second
	a := p.open(t, Options{Name: "a", LeadFor: leadFor, answerIn: 300 * time.Millisecond})
	b := open(t, Options{URL: srv.ClientURL(), Name: "b", LeadFor: leadFor})
	ledA, _ := leading(t, a)
	first := next(t, ledA)
	ledB, _ := leading(t, b)
	var silent atomic.Bool
	silent.Store(true)
	p.losing(func([]byte) bool { return silent.Load() })
	next(t, ledB)
	if a.Leads() {
		t.Error("two lead at a time")
	}
	<-first.Done()
	if err := a.EnsureLeader(testContext(t)); err == nil {
		t.Error("the first one would still write elsewhere")
	}
	silent.Store(false)
	eventually(t, "the first one knows who leads", func() bool { who, _ := a.Leader(); return !a.Leads() && who == "b" })
}

// A process whose clocks stood still believes that it leads. What its successor has touched, it cannot change.
func TestFence(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	open := func(name string) *Journal { return open(t, Options{URL: url, Name: name, LeadFor: 12 * time.Second}) }
	a, b := open("a"), open("b")
	ctx := testContext(t)
	ledA, stopA := leading(t, a)
	next(t, ledA)
	before := map[string]uint64{}
	for _, run := range []string{"one", "two"} {
		seq, err := a.Append(ctx, run, 0, "kind", "a")
		if err != nil {
			t.Fatal(err)
		}
		before[run] = seq
	}
	for _, id := range []string{"job", "gone"} {
		if err := a.Enqueue(ctx, Job{Job: scheduler.Job{ID: id, Labels: []string{id}}, Bundle: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	jobs := []*entry{a.queue.get("job"), a.queue.get("gone")}
	stopA()
	ledB, _ := leading(t, b)
	next(t, ledB)
	after, err := b.Append(ctx, "one", before["one"], "kind", "b")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := b.Lease(ctx, "runner", "job")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Cancel(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	processing(t, b, func(context.Context, webhook.Delivery) error { return nil })
	eventually(t, "the second one has the deliveries", func() bool {
		is, _, err := getRecord[cursor](ctx, b.state, placeKey)
		return err == nil && is.Epoch == 2
	})

	again := func() {
		believe(a, 1)
		a.queue.clear()
		for _, e := range jobs {
			a.queue.add(e, nil)
		}
	}
	again()
	if _, err := a.Append(ctx, "one", before["one"], "kind", "late"); !errors.Is(err, ErrConflict) {
		t.Errorf("a write after what it knew: %v", err)
	}
	for name, do := range map[string]func() error{
		"append after a look": func() error {
			last, err := a.Last(ctx, "one")
			if err == nil {
				_, err = a.Append(ctx, "one", last.Seq, "kind", "late")
			}
			return err
		},
		"append after a replay": func() error {
			seq, err := a.ReplayRun(ctx, "one", func(Event) error { return nil })
			if err == nil {
				_, err = a.Append(ctx, "one", seq, "kind", "late")
			}
			return err
		},
		"lease":      func() error { _, err := a.Lease(ctx, "thief", "job"); return err },
		"cancel":     func() error { _, err := a.Cancel(ctx, "job"); return err },
		"attach":     func() error { _, err := a.Attach(ctx, "job", lease.Token, "runner"); return err },
		"deliveries": func() error { return (&processor{j: a}).tryClaim(ctx) },
		"renewal":    func() error { return a.renewLead(ctx) },
	} {
		again()
		if err := do(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%s: %v", name, err)
		}
		if a.Leads() {
			t.Errorf("%s: it still believes that it leads", name)
		}
	}
	if last, err := b.Last(ctx, "one"); err != nil || last.Seq != after {
		t.Errorf("the last event is %d, want %d (%v)", last.Seq, after, err)
	}
	if err := lease.Extend(ctx); err != nil {
		t.Errorf("the successor's lease: %v", err)
	}
	// What the successor has not touched is as if it had been written before.
	again()
	if _, err := a.Append(ctx, "two", before["two"], "kind", "late"); err != nil {
		t.Errorf("a late write that nobody minds: %v", err)
	}
	if _, err := b.Append(ctx, "two", before["two"], "kind", "b"); !errors.Is(err, ErrConflict) {
		t.Errorf("the successor did not notice it: %v", err)
	}
}

// An answer that is lost costs no lead: the next word finds the record as this process left it.
func TestLeadSurvivesALostAnswer(t *testing.T) {
	t.Parallel()
	p := newProxy(t, external(t))
	a := p.open(t, Options{Name: "a", LeadFor: 6 * time.Second})
	ledA, _ := leading(t, a)
	led := next(t, ledA)
	var lost atomic.Int32
	p.losing(func(m []byte) bool {
		return strings.Contains(string(m), `"stream":"KV_LEASES"`) && lost.Add(1) == 1
	})
	ctx := testContext(t)
	eventually(t, "the lead is renewed", func() bool { return a.renewLead(ctx) == nil && lost.Load() > 1 })
	if led.Err() != nil || a.epoch() != 1 {
		t.Errorf("the lead was lost: %v, epoch %d", context.Cause(led), a.epoch())
	}
}

// Many that stop and start lead one at a time, and none of them misses its turn.
func TestOneLeadsAtATime(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	ctx := testContext(t)
	var all []*Journal
	for g := range 3 {
		all = append(all, open(t, Options{URL: url, Name: fmt.Sprint(g), LeadFor: 3 * time.Second}))
	}
	var working sync.WaitGroup
	for _, j := range all {
		working.Go(func() {
			for range 5 {
				err := j.Campaign(ctx, func(context.Context) error {
					for _, other := range all {
						theirs := other.Leads()
						if other != j && theirs && j.Leads() {
							t.Errorf("%s and %s lead", j.opt.Name, other.opt.Name)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
}

// Of what one that stands by accepts the one that leads hears at once, and need not look for it.
func TestAcceptedElsewhere(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	a, b := open(t, Options{URL: url, Name: "a"}), open(t, Options{URL: url, Name: "b"})
	ledA, _ := leading(t, a)
	next(t, ledA)
	heard := a.accepted.wait()
	if _, err := b.Accept(testContext(t), webhook.Delivery{ID: "one", Event: "push"}); err != nil {
		t.Fatal(err)
	}
	next(t, heard)
	handled := make(chan string, 1)
	processing(t, a, func(_ context.Context, d webhook.Delivery) error { handled <- d.ID; return nil })
	if id := next(t, handled); id != "one" {
		t.Errorf("handled %s", id)
	}
}

// Where the record of who led is gone, and events of that time are not, the next lead has a newer epoch than they have.
func TestEpochsGrowForGood(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	a := open(t, Options{URL: url})
	ctx := testContext(t)
	believe(a, 57)
	a.lead.asked = true
	if _, err := a.Append(ctx, "run", 0, "kind", 1); err != nil {
		t.Fatal(err)
	}
	b := open(t, Options{URL: url})
	ledB, _ := leading(t, b)
	next(t, ledB)
	for b.epoch() <= 57 {
		seq, err := b.ReplayRun(ctx, "run", func(Event) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err = b.Append(ctx, "run", seq, "kind", 2); err == nil {
			break
		}
		if !errors.Is(err, ErrNotLeading) {
			t.Fatal(err)
		}
		next(t, ledB)
	}
	if b.epoch() != 58 {
		t.Errorf("the epoch is %d", b.epoch())
	}
}

// Between taking the lead and having read the jobs nobody is told that a job is gone.
func TestJobsAreReadBeforeTheyAreMissed(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	a, b := open(t, Options{URL: url, Name: "a"}), open(t, Options{URL: url, Name: "b"})
	ctx := testContext(t)
	ledA, stopA := leading(t, a)
	next(t, ledA)
	if err := a.Enqueue(ctx, Job{Job: scheduler.Job{ID: "job", Labels: []string{"cpu"}}, Bundle: "b"}); err != nil {
		t.Fatal(err)
	}
	lease, err := a.Lease(ctx, "runner", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	stopA()
	b.lead.asked, b.lead.holder = true, "b"
	b.queue.clear()
	if led, err := b.acquireLead(ctx); err != nil || led.Err() != nil {
		t.Fatal(err)
	}
	if _, err := b.Attach(ctx, "job", lease.Token, "runner"); !errors.Is(err, ErrNotLeading) {
		t.Errorf("attach before the jobs were read: %v", err)
	}
	if _, err := b.Cancel(ctx, "job"); !errors.Is(err, ErrNotLeading) {
		t.Errorf("cancel before the jobs were read: %v", err)
	}
}
