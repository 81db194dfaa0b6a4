package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestThrottleKeepsBelowBothPaces(t *testing.T) {
	t.Parallel()
	b := newBench()
	var sent []time.Time
	s := &script{}
	th := &throttle{env: b.env, next: roundTripper(func(rq *http.Request) (*http.Response, error) {
		sent = append(sent, b.Now())
		return s.RoundTrip(rq)
	}), windows: contentWindows(b.opt)}
	start := b.Now()
	for i := range 600 {
		rq, _ := request(t, t.Context(), "POST", op{})
		if _, err := th.RoundTrip(rq); err != nil {
			t.Fatal(err)
		}
		if i == b.opt.ContentPerMinute-1 && b.Now() != start {
			t.Errorf("waited %v below the limit", b.Now().Sub(start))
		}
	}
	for span, most := range map[time.Duration]int{time.Minute: 80, time.Hour: 500} {
		for i := range sent {
			n := 0
			for _, at := range sent[i:] {
				if at.Before(sent[i].Add(span)) {
					n++
				}
			}
			if n >= most {
				t.Fatalf("%d writes within %v of %v", n, span, sent[i])
			}
		}
	}
	if total := b.Now().Sub(start); total > time.Hour+3*time.Minute {
		t.Errorf("600 writes took %v", total)
	}
}

func TestThrottleLetsReadsPass(t *testing.T) {
	t.Parallel()
	b := newBench()
	th := &throttle{env: b.env, next: &script{}, windows: []*window{{span: time.Hour, most: 1}}}
	for range 3 {
		rq, _ := request(t, t.Context(), "GET", op{})
		if _, err := th.RoundTrip(rq); err != nil {
			t.Fatal(err)
		}
	}
	if waits := b.stats.read().Waits; len(waits) > 0 {
		t.Errorf("reads waited: %v", waits)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 2 {
		rq, _ := request(t, ctx, "POST", op{})
		if _, err := th.RoundTrip(rq); errors.Is(err, ErrLimited) != (i == 1) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

func TestThrottleWithoutLimit(t *testing.T) {
	t.Parallel()
	w := &window{span: time.Minute, most: -1, sent: make([]write, 100)}
	if d := w.full(time.Time{}, Urgent); d != 0 {
		t.Errorf("waits %v", d)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(rq *http.Request) (*http.Response, error) { return f(rq) }

func TestWritesTakeTurnsAndReadsDoNot(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	entered, leave := make(chan struct{}), make(chan struct{})
	turns := newTurn(roundTripper(func(rq *http.Request) (*http.Response, error) {
		if !writes(rq) {
			return status(200)(rq)
		}
		mu.Lock()
		running++
		most = max(most, running)
		alone := running == 1
		mu.Unlock()
		if alone {
			entered <- struct{}{}
			<-leave
		}
		mu.Lock()
		running--
		mu.Unlock()
		return status(200)(rq)
	}), nil)
	var all sync.WaitGroup
	for range 4 {
		rq, _ := request(t, t.Context(), "POST", op{})
		all.Go(func() {
			if _, err := turns.RoundTrip(rq); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	read, _ := request(t, t.Context(), "GET", op{})
	if _, err := turns.RoundTrip(read); err != nil {
		t.Error(err)
	}
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // if the turn were free, a select would sometimes take it
		late, _ := request(t, hasty, "POST", op{})
		if _, err := turns.RoundTrip(late); !errors.Is(err, context.Canceled) {
			t.Fatalf("one whose context has ended: %v", err)
		}
	}
	leave <- struct{}{}
	for range 3 {
		<-entered
		leave <- struct{}{}
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d writes at once", most)
	}
}

// TestSpareWritesLeaveRoomForOthers lets one long measurement report its progress as often as it
// may, while verdicts are written. The verdicts never wait, and the busier the hour, the fewer
// progress reports are sent.
func TestSpareWritesLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	before := 1000
	for _, verdicts := range []int{0, 120, 240, 400} {
		b := newBench()
		th := &throttle{env: b.env, next: &script{}, windows: contentWindows(b.opt)}
		start, spare, late, done := b.Now(), 0, 0, 0
		for minute := range 60 {
			for range 8 {
				rq, _ := request(t, LowPriority(t.Context()), "PATCH", op{})
				_, err := th.RoundTrip(rq)
				if err == nil {
					spare++
					late += minute / 45
				} else if !errors.Is(err, ErrShed) {
					t.Fatal(err)
				}
			}
			for ; done < verdicts*(minute+1)/60; done++ {
				rq, _ := request(t, t.Context(), "PATCH", op{})
				if _, err := th.RoundTrip(rq); err != nil {
					t.Fatal(err)
				}
			}
			_ = b.Sleep(t.Context(), start.Add(time.Duration(minute+1)*time.Minute).Sub(b.Now()))
		}
		t.Logf("%d verdicts leave %d spare writes, %d of them in the last quarter", verdicts, spare, late)
		if waits := b.stats.read().Waits; len(waits) > 0 {
			t.Errorf("%d verdicts waited %v times beside %d spare writes", verdicts, waits, spare)
		}
		if spare >= before || spare > 160 || verdicts <= 240 && late < spare/12 {
			t.Errorf("%d spare writes beside %d verdicts, %d of them late; beside fewer verdicts there were %d", spare, verdicts, late, before)
		}
		before = spare
	}
}

// TestSpareWriteDoesNotQueue checks that an optional write does not queue behind a write that waits
// for room.
func TestSpareWriteDoesNotQueue(t *testing.T) {
	t.Parallel()
	b := newBench()
	th := &throttle{env: b.env, next: &script{}, windows: []*window{{span: time.Minute, most: 3, sent: []write{{b.Now(), Urgent}}}}}
	turns := newTurn(th, th)
	turns.held <- struct{}{} // another write waits for room
	rq, _ := request(t, LowPriority(t.Context()), "PATCH", op{})
	if _, err := turns.RoundTrip(rq); !errors.Is(err, ErrShed) {
		t.Errorf("got %v", err)
	}
}

// TestPrioritiesLeaveRoom checks that a write that is not urgent is refused if it would take the
// room of urgent ones.
func TestPrioritiesLeaveRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		priority Priority
		want     int // of 60 writes per minute, 120 per hour and thus 20 per ten minutes
	}{"routine": {Routine, 50}, "backlog": {Backlog, 13}} {
		b := newBench()
		b.opt.ContentPerMinute, b.opt.ContentPerHour = 60, 120
		th := &throttle{env: b.env, next: &script{}, windows: contentWindows(b.opt)}
		passed, refused := 0, error(nil)
		for refused == nil {
			rq, _ := request(t, WithPriority(t.Context(), c.priority), "POST", op{})
			if _, refused = th.RoundTrip(rq); refused == nil {
				passed++
			}
		}
		if passed != c.want || !errors.Is(refused, ErrShed) || th.spared(c.priority) == nil {
			t.Errorf("%s: %d writes passed, want %d: %v", name, passed, c.want, refused)
		}
		for range 60 - passed {
			rq, _ := request(t, t.Context(), "POST", op{})
			if _, err := th.RoundTrip(rq); err != nil {
				t.Fatal(err)
			}
		}
		if waits := b.stats.read().Waits; len(waits) > 0 {
			t.Errorf("%s: urgent writes waited: %v", name, waits)
		}
	}
	tiny := &window{span: time.Hour, most: 1, sent: []write{{time.Time{}, Urgent}}}
	if d := tiny.full(time.Time{}.Add(time.Minute), Backlog); d != 59*time.Minute {
		t.Errorf("with one write an hour the next is in %v", d)
	}
}
