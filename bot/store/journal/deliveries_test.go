package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/google/go-cmp/cmp"
)

func accept(t testing.TB, j *Journal, d webhook.Delivery) bool {
	t.Helper()
	d.Event = "push"
	isNew, err := j.Accept(testContext(t), d)
	if err != nil {
		t.Fatal(err)
	}
	return isNew
}

// processing runs Process in the background; stop ends it and waits.
func processing(t *testing.T, j *Journal, handle func(context.Context, webhook.Delivery) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- j.Process(ctx, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// next waits for one value.
func next[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-testContext(t).Done():
		t.Fatal("nothing came")
	}
	return v
}

func TestDeliveryComesBackAsItCame(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	sent := webhook.Delivery{ID: "a-1", Event: "push", Body: []byte("\x00{}"),
		Received: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	accept(t, j, sent)
	got := make(chan webhook.Delivery, 1)
	processing(t, j, func(_ context.Context, d webhook.Delivery) error { got <- d; return nil })
	if diff := cmp.Diff(sent, next(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	accept(t, j, webhook.Delivery{ID: "a-1", Event: "push"})
	for id, want := range map[string]bool{"a-1": true, "a-2": false} {
		if got, err := j.Accepted(testContext(t), "push", id); err != nil || got != want {
			t.Errorf("%s is accepted: %v, %v", id, got, err)
		}
	}
	if _, err := j.Accepted(testContext(t), "push", "*"); err == nil {
		t.Error("a pattern was taken for a delivery")
	}
}

func TestAcceptRefusesNamesThatAreSubjects(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	for _, d := range []webhook.Delivery{{ID: "", Event: "push"}, {ID: "a.b", Event: "push"}, {ID: "*", Event: "push"},
		{ID: "a", Event: ">"}, {ID: strings.Repeat("a", 129), Event: "push"}} {
		if _, err := j.Accept(testContext(t), d); err == nil {
			t.Errorf("accepted %+v", d)
		}
	}
}

func TestLargestWebhook(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	accept(t, j, webhook.Delivery{ID: "big", Body: make([]byte, 25<<20)})
	size := make(chan int, 1)
	processing(t, j, func(_ context.Context, d webhook.Delivery) error { size <- len(d.Body); return nil })
	if got := next(t, size); got != 25<<20 {
		t.Errorf("%d bytes came back", got)
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	if !accept(t, j, webhook.Delivery{ID: "a"}) {
		t.Error("the first is not new")
	}
	if accept(t, j, webhook.Delivery{ID: "a"}) {
		t.Error("a copy of one that waits is new")
	}
	got := make(chan string, 10)
	handle := func(_ context.Context, d webhook.Delivery) error { got <- d.ID; return nil }
	stop := processing(t, j, handle)
	next(t, got)
	stop()
	if accept(t, j, webhook.Delivery{ID: "a"}) {
		t.Error("a copy of one that was processed is new")
	}
	accept(t, j, webhook.Delivery{ID: "b"})
	processing(t, j, handle)
	if id := next(t, got); id != "b" {
		t.Errorf("%s was processed twice", id)
	}
}

func TestConcurrentDuplicatesAreStoredOnce(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	const ids, copies = 40, 4 // enough at once for batches, each with copies in it
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := make(map[string]int)
	for i := range ids * copies {
		wg.Go(func() {
			id := fmt.Sprint("d", i%ids)
			isNew, err := j.Accept(testContext(t), webhook.Delivery{ID: id, Event: "push", Body: []byte("{}")})
			if err != nil {
				t.Error(err)
			}
			if isNew {
				mu.Lock()
				fresh[id]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range fresh {
		if n != 1 {
			t.Errorf("%s was new %d times", id, n)
		}
	}
	info, err := j.deliveries.Info(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(fresh) != ids || info.State.Msgs != ids {
		t.Errorf("%d new and %d stored, want %d", len(fresh), info.State.Msgs, ids)
	}
}

func TestOrderAndRetry(t *testing.T) {
	t.Parallel()
	j := open(t, Options{Retry: []time.Duration{time.Millisecond, time.Millisecond}})
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		accept(t, j, webhook.Delivery{ID: id})
	}
	failures := 2
	all := make(chan struct{})
	var order []string
	processing(t, j, func(_ context.Context, d webhook.Delivery) error {
		if d.ID == "a" && failures > 0 {
			if failures--; failures == 0 {
				panic("the handler panics")
			}
			return errors.New("not yet")
		}
		if order = append(order, d.ID); len(order) == 5 {
			close(all)
		}
		return nil
	})
	next(t, all)
	others := slices.DeleteFunc(slices.Clone(order), func(id string) bool { return id == "a" })
	if diff := cmp.Diff([]string{"b", "c", "d", "e"}, others); diff != "" || failures != 0 {
		t.Error(diff, failures)
	}
}

// However many wait for their next attempt, the others go on.
func TestFailingHoldUpNoOther(t *testing.T) {
	t.Parallel()
	j := open(t, Options{Retry: []time.Duration{time.Hour}})
	const n = 300 // more than the server lets a consumer leave unacknowledged here once
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { accept(t, j, webhook.Delivery{ID: fmt.Sprint("bad", i)}) })
	}
	all.Wait()
	accept(t, j, webhook.Delivery{ID: "good"})
	got := make(chan string, n+1)
	processing(t, j, func(_ context.Context, d webhook.Delivery) error {
		got <- d.ID
		if d.ID != "good" {
			return errors.New("down")
		}
		return nil
	})
	for next(t, got) != "good" {
	}
}

func TestDeadLetterAndRedelivery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o := Options{Dir: dir, Retry: []time.Duration{time.Millisecond}, Now: func() time.Time { return now }}
	j := open(t, o)
	ctx := testContext(t)
	accept(t, j, webhook.Delivery{ID: "bad", Received: now})
	accept(t, j, webhook.Delivery{ID: "good", Received: now})
	got := make(chan string, 10)
	stop := processing(t, j, func(_ context.Context, d webhook.Delivery) error {
		got <- d.ID
		if d.ID == "bad" {
			return errors.New("cannot be understood")
		}
		return nil
	})
	handled := []string{next(t, got), next(t, got), next(t, got)}
	if slices.Sort(handled); !slices.Equal(handled, []string{"bad", "bad", "good"}) {
		t.Errorf("handled %s", handled)
	}
	stop()
	dead, err := j.Dead(ctx)
	want := []DeadDelivery{{ID: "bad", Event: "push", Received: now, Attempts: 2, Error: "cannot be understood", At: now, Seq: 1}}
	if diff := cmp.Diff(want, dead); err != nil || diff != "" {
		t.Fatal(diff, err)
	}

	// Dead it stays, also after a restart, until GitHub sends it again.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	handle := func(_ context.Context, d webhook.Delivery) error { got <- d.ID; return nil }
	accept(t, j, webhook.Delivery{ID: "other"})
	stop = processing(t, j, handle)
	if id := next(t, got); id != "other" {
		t.Errorf("handled %s, want other", id)
	}
	if !accept(t, j, webhook.Delivery{ID: "bad", Received: now}) {
		t.Error("a copy of one that was given up is not new")
	}
	if id := next(t, got); id != "bad" {
		t.Errorf("handled %s, want bad", id)
	}
	stop()
	if accept(t, j, webhook.Delivery{ID: "bad", Received: now}) {
		t.Error("a copy of one that was processed at last is new")
	}
	if dead, err := j.Dead(ctx); err != nil || len(dead) != 0 {
		t.Errorf("still dead: %v, %v", dead, err)
	}
}

// An attempt that was counted but never ended is one that took the process with it.
func TestDeliveryThatKillsTheProcessIsGivenUp(t *testing.T) {
	t.Parallel()
	j := open(t, Options{Retry: []time.Duration{time.Millisecond}})
	ctx := testContext(t)
	accept(t, j, webhook.Delivery{ID: "killer"})
	if err := putRecord(ctx, j.state, "killer", deliveryState{Seq: 1, Attempts: 2}); err != nil {
		t.Fatal(err)
	}
	accept(t, j, webhook.Delivery{ID: "next"})
	got := make(chan string, 10)
	processing(t, j, func(_ context.Context, d webhook.Delivery) error { got <- d.ID; return nil })
	if id := next(t, got); id != "next" {
		t.Errorf("handled %s, want next", id)
	}
	dead, err := j.Dead(ctx)
	if err != nil || len(dead) != 1 || dead[0].ID != "killer" || !strings.Contains(dead[0].Error, "process ended") {
		t.Errorf("dead: %+v, %v", dead, err)
	}
}

func TestShutdownIsNotAFailure(t *testing.T) {
	t.Parallel()
	j := open(t, Options{Retry: []time.Duration{}})
	accept(t, j, webhook.Delivery{ID: "a"})
	for range 3 {
		started := make(chan struct{}, 1)
		stop := processing(t, j, func(ctx context.Context, _ webhook.Delivery) error {
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		next(t, started)
		stop()
	}
	if dead, err := j.Dead(testContext(t)); err != nil || len(dead) != 0 {
		t.Errorf("dead: %v, %v", dead, err)
	}
}

func TestSecondProcessEndsTheFirst(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	handle := func(context.Context, webhook.Delivery) error { return nil }
	ended := make(chan error, 1)
	started := make(chan struct{}, 1)
	accept(t, j, webhook.Delivery{ID: "a"})
	go func() {
		ended <- j.Process(testContext(t), func(context.Context, webhook.Delivery) error { started <- struct{}{}; return nil })
	}()
	next(t, started)
	processing(t, j, handle)
	if err := next(t, ended); err == nil || !strings.Contains(err.Error(), "another bot") {
		t.Errorf("the first ended with %v", err)
	}
}

// More than fit into one page, handled more slowly than they come.
func TestBacklogIsProcessedInOrder(t *testing.T) {
	t.Parallel()
	j := open(t, Options{})
	const n = 3*readAhead + 5
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("d", i)
		accept(t, j, webhook.Delivery{ID: ids[i], Body: []byte("{}")})
	}
	got := make(chan string) // unbuffered: the handler waits for its reader
	processing(t, j, func(_ context.Context, d webhook.Delivery) error { got <- d.ID; return nil })
	for i, want := range ids {
		if id := next(t, got); id != want {
			t.Fatalf("number %d is %s, want %s", i, id, want)
		}
	}
}

// GitHub hangs up after ten seconds: every delivery has an answer before, and a large one has the time that its way takes.
func TestAcceptIn(t *testing.T) {
	t.Parallel()
	j := &Journal{opt: Options{}.withDefaults()}
	for size, want := range map[int]time.Duration{0: 8 * time.Second, 10 << 20: 8*time.Second + (10<<20)*perByte, 25 << 20: 9500 * time.Millisecond} {
		if got := j.acceptIn(size); got != want || got >= 10*time.Second {
			t.Errorf("%d bytes may take %v, want %v", size, got, want)
		}
	}
}
