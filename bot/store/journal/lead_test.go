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
	l.epoch, l.sent, l.lasts = epoch, time.Now(), time.Hour
	l.led, l.lost = context.WithCancelCause(context.Background())
}

func (j *Journal) epoch() uint64 {
	j.lead.mu.Lock()
	defer j.lead.mu.Unlock()
	return j.lead.epoch
}

// A process that gives the lead back has a successor at once. Both accept deliveries, and the one that leads processes them.
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

	for name, do := range map[string]func() error{
		"append": func() error { _, err := b.Append(ctx, "run", 0, "kind", 1); return err },
		"wait":   func() error { _, _, err := b.WhileLeading(ctx); return err },
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
	waiting, done, err := a.WhileLeading(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	stopA()
	next(t, waiting.Done())
	next(t, ledB)
	if b.epoch() != 2 {
		t.Errorf("the second leads with epoch %d", b.epoch())
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
	stopA()
	ledB, _ := leading(t, b)
	next(t, ledB)
	after, err := b.Append(ctx, "one", before["one"], "kind", "b")
	if err != nil {
		t.Fatal(err)
	}
	processing(t, b, func(context.Context, webhook.Delivery) error { return nil })
	eventually(t, "the second one has the deliveries", func() bool {
		is, _, err := getRecord[cursor](ctx, b.state, placeKey)
		return err == nil && is.Epoch == 2
	})

	again := func() { believe(a, 1) }
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
	heard := a.arrived.wait()
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

// Whoever has jobs in memory hears of every change of leadership: before the leader begins, and after it has ended. One that
// cannot read them gives the lead up, and is asked again.
func TestOnElection(t *testing.T) {
	t.Parallel()
	a := open(t, Options{URL: external(t).ClientURL(), LeadFor: time.Second})
	heard := make(chan string, 16)
	failing := true
	a.OnElection(func(context.Context) error {
		heard <- "elected"
		if failing {
			failing = false
			return errors.New("unreadable")
		}
		return nil
	}, func() { heard <- "deposed" })
	led, stop := leading(t, a)
	for _, want := range []string{"elected", "deposed", "elected"} {
		if got := next(t, heard); got != want {
			t.Fatalf("heard %s, want %s", got, want)
		}
	}
	next(t, led)
	stop()
	if got := next(t, heard); got != "deposed" {
		t.Errorf("heard %s at the end", got)
	}
}
