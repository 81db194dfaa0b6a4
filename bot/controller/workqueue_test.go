package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/runners"
)

// A crew is workers on things that are named account/thing, in a time that passes when
// all wait. It notes when each was worked on.
type crew struct {
	*workQueue[string]
	mu   sync.Mutex
	did  map[string][]time.Duration
	from time.Time
}

// in runs a test with workers that do what it says, and ends them.
func in(t *testing.T, do func(context.Context, string, int) error, test func(*crew)) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{did: map[string][]time.Duration{}, from: time.Now()}
		c.workQueue = &workQueue[string]{
			name: "test", timeout: time.Minute, slots: 2, backoff: time.Second, log: slog.New(slog.DiscardHandler), now: time.Now, leads: func() bool { return true },
			lane: func(_ context.Context, key string) (lane, error) {
				name, _, _ := strings.Cut(key, "/")
				return lane{account: name, strangers: strings.Contains(key, "fork")}, nil
			},
			handle: func(ctx context.Context, key string) error {
				c.mu.Lock()
				c.did[key] = append(c.did[key], time.Since(c.from))
				n := len(c.did[key])
				c.mu.Unlock()
				return do(ctx, key, n)
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		c.start(ctx)
		test(c)
		cancel()
		c.drain()
	})
}

func (c *crew) at(key string) string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.did[key])
}

// An account that gets no answer holds up itself alone, and that for no longer than the
// deadline.
func TestAccountsDoNotWaitForEachOther(t *testing.T) {
	in(t, func(ctx context.Context, key string, _ int) error {
		if strings.HasPrefix(key, "slow") {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, func(c *crew) {
		for i := range 50 {
			c.add(fmt.Sprint("slow/", i))
		}
		c.add("fast/1")
		if got := c.at("fast/1"); got != "[0s]" {
			t.Errorf("another account was worked on at %s", got)
		}
		time.Sleep(30 * time.Minute)
		for i := range 50 {
			if got := c.at(fmt.Sprint("slow/", i)); got == "[]" {
				t.Errorf("slow/%d never had its turn", i)
			}
		}
	})
}

// Strangers hold up each other, and nobody else of the account.
func TestStrangersHoldUpNobodyElse(t *testing.T) {
	in(t, func(ctx context.Context, key string, _ int) error {
		if strings.Contains(key, "fork") {
			<-ctx.Done()
		}
		return ctx.Err()
	}, func(c *crew) {
		for i := range 50 {
			c.add(fmt.Sprint("a/fork", i))
		}
		synctest.Wait()
		c.mu.Lock()
		begun := len(c.did)
		c.mu.Unlock()
		if begun != strangerSlots {
			t.Errorf("%d pull requests of strangers were worked on at once, want %d", begun, strangerSlots)
		}
		for i := range 10 {
			c.add(fmt.Sprint("a/own", i))
			if got := c.at(fmt.Sprint("a/own", i)); got != "[0s]" {
				t.Errorf("the account's own work %d was done at %s", i, got)
			}
		}
	})
}

// A pull request from a fork is a stranger's until somebody has approved its head.
func TestLanes(t *testing.T) {
	token, err := client.NewToken("x", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := &Controller{Config: Config{GitHub: token, Now: time.Now}}
	own := &change.State{Facts: change.Facts{Head: "b"}}
	of := func(head string) *change.State {
		s := &change.State{Facts: change.Facts{Head: head, Fork: true}, Approved: []change.ForkApproved{{For: change.NewScope("a", "", "")}}}
		s.Plan = &change.Plan{Key: s.Facts.PlanKey()}
		return s
	}
	fork, approved := of("b"), of("a")
	if is, f, ok := k.laneOfState(own), k.laneOfState(fork), k.laneOfState(approved); is.strangers || !f.strangers || ok != is {
		t.Errorf("the lanes are %v, %v for a fork and %v for an approved one", is, f, ok)
	}
}

func TestPauses(t *testing.T) {
	limited := &client.Error{Op: "test", Err: client.ErrLimited}
	for name, c := range map[string]struct {
		do   func(key string, n int) error
		then func(c *crew)
		want string
	}{
		"a failure is tried again, ever later": {
			func(_ string, n int) error {
				if n < 5 {
					return errors.New("not yet")
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Hour) }, "[0s 1s 3s 7s 15s]",
		},
		"a limit is waited for": {
			func(_ string, n int) error {
				if n == 1 {
					e := *limited
					e.RetryAt = time.Now().Add(40 * time.Minute)
					return fmt.Errorf("asking: %w", &e)
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Hour) }, "[0s 40m0s]",
		},
		"news ends a pause": {
			func(_ string, n int) error {
				if n == 1 {
					e := *limited
					e.RetryAt = time.Now().Add(40 * time.Minute)
					return &e
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Minute); c.add("a/1"); time.Sleep(time.Hour) }, "[0s 1m0s]",
		},
		"a reminder does not": {
			func(_ string, n int) error {
				if n == 1 {
					e := *limited
					e.RetryAt = time.Now().Add(40 * time.Minute)
					return &e
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Minute); c.addIfAbsent("a/1"); time.Sleep(time.Hour) }, "[0s 40m0s]",
		},
		"what GitHub refuses is tried ever more rarely": {
			func(string, int) error { return &client.Error{Op: "test", Status: 403, Message: "no"} },
			func(c *crew) { time.Sleep(8 * time.Hour) },
			"[0s 1m4s 3m12s 7m28s 16m0s 33m4s 1h7m12s 2h7m12s 3h7m12s 4h7m12s 5h7m12s 6h7m12s 7h7m12s]",
		},
		"what is for later is no failure": {
			func(_ string, n int) error {
				if n < 4 {
					return requeueAt(time.Now().Add(10 * time.Second))
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Hour) }, "[0s 10s 20s 30s]",
		},
		"news meanwhile": {
			func(_ string, n int) error {
				time.Sleep(10 * time.Second)
				if n == 1 {
					return requeueAt(time.Now().Add(10 * time.Minute))
				}
				return nil
			}, func(c *crew) { time.Sleep(time.Second); c.add("a/1"); c.add("a/1"); time.Sleep(time.Hour) }, "[0s 10s]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(_ context.Context, key string, n int) error { return c.do(key, n) }, func(w *crew) {
				w.add("a/1")
				synctest.Wait()
				c.then(w)
				if got := w.at("a/1"); got != c.want {
					t.Errorf("worked on at %s, want %s", got, c.want)
				}
			})
		})
	}
}

// Whatever comes, memory stays what it is.
func TestMemoryIsBounded(t *testing.T) {
	k := New(Config{})
	for i := range 3 * cacheSize {
		k.progress.Add(fmt.Sprint(i), runners.LogEntry{})
		k.redeliverer.asked.Add(fmt.Sprint(i), ask{})
	}
	if k.progress.Len() > cacheSize || k.redeliverer.asked.Len() > cacheSize {
		t.Errorf("%d and %d are remembered", k.progress.Len(), k.redeliverer.asked.Len())
	}
	synctest.Test(t, func(t *testing.T) {
		w := &workQueue[int]{timeout: time.Minute, slots: 1, backoff: time.Second, log: slog.New(slog.DiscardHandler), now: time.Now, leads: func() bool { return true },
			lane:   func(_ context.Context, key int) (lane, error) { return lane{account: fmt.Sprint(key)}, nil },
			handle: func(context.Context, int) error { return nil }}
		w.start(t.Context())
		for i := range 1000 {
			w.add(i)
		}
		synctest.Wait()
		if len(w.tasks) > 0 || len(w.shares) > 0 {
			t.Errorf("%d tasks and %d accounts are left", len(w.tasks), len(w.shares))
		}
	})
}

// A bot that leads again does not know what another has told people meanwhile, of places in line too.
func TestPlacesOfAnotherLead(t *testing.T) {
	k := New(Config{})
	k.positions.Add("a job", scheduler.Position{Ahead: 8})
	if k.positionChanged("a job", scheduler.Position{Ahead: 9}) {
		t.Error("a step back in line is told at once")
	}
	k.resetMemory()
	if !k.positionChanged("a job", scheduler.Position{Ahead: 9}) {
		t.Error("what was told before another led is taken for what people see")
	}
}

// What was worked on when the lead was lost is named, whether it then succeeded or failed, and nothing else is: not what
// was done before, and not what paused. Afterwards the same workers may begin anew.
func TestWorkThatLosesTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leads, release := true, make(chan struct{})
		w := &workQueue[string]{timeout: time.Minute, slots: 9, backoff: time.Hour, log: slog.New(slog.DiscardHandler), now: time.Now,
			leads: func() bool { return leads },
			lane:  func(context.Context, string) (lane, error) { return lane{}, nil },
			handle: func(_ context.Context, key string) error {
				switch key {
				case "done":
					return nil
				case "pausing":
					return errors.New("not now")
				}
				<-release
				if key == "fails" {
					return errors.New("no")
				}
				return nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		w.start(ctx)
		for _, key := range []string{"done", "pausing", "succeeds", "fails"} {
			w.add(key)
		}
		synctest.Wait()
		leads = false
		close(release)
		synctest.Wait()
		cancel()
		cut := w.drain()
		slices.Sort(cut)
		if got := strings.Join(cut, " "); got != "fails succeeds" {
			t.Errorf("under way when the lead was lost: %q", got)
		}
		leads = true
		ctx, cancel = context.WithCancel(t.Context())
		w.start(ctx)
		w.add("succeeds")
		synctest.Wait()
		if !w.idle() {
			t.Error("the second time it does not come to rest")
		}
		cancel()
		w.drain()
	})
}

// A change that takes too long to read is read again after pauses that grow to an hour.
func TestSlowReadingRests(t *testing.T) {
	in(t, func(context.Context, string, int) error { return fmt.Errorf("planning: %w", planner.ErrSlow) }, func(c *crew) {
		c.add("a/1")
		time.Sleep(8 * time.Hour)
		if got, want := c.at("a/1"), "[0s 1m4s 3m12s 7m28s 16m0s 33m4s 1h7m12s 2h7m12s 3h7m12s 4h7m12s 5h7m12s 6h7m12s 7h7m12s]"; got != want {
			t.Errorf("it was read at %s, want %s", got, want)
		}
	})
}
