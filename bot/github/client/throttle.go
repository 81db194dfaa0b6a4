package client

import (
	"net/http"
	"sync"
	"time"
)

// throttle keeps the pace of writes a little below the pace at which GitHub blocks an identity. It
// counts the writes of the last minute and of the last hour and does not use a token bucket. A full
// bucket allows nearly twice its size within a minute, and a bucket small enough to be safe makes a
// reply wait long before that is necessary.
//
// Only an urgent write waits here. Every other write is refused if there is no room, so that it
// delays nobody: see Priority.
type throttle struct {
	*env
	next    http.RoundTripper
	mu      sync.Mutex
	windows []*window
}

// contentWindows returns GitHub's two limits, and a third between them that spreads backlog writes
// over the hour.
func contentWindows(opt Options) []*window {
	return []*window{{span: time.Minute, most: opt.ContentPerMinute}, {span: time.Hour, most: opt.ContentPerHour},
		{span: 10 * time.Minute, most: opt.ContentPerHour / 6, spreads: true}}
}

func (t *throttle) RoundTrip(rq *http.Request) (*http.Response, error) {
	for writes(rq) {
		p := priorityOf(rq.Context())
		d := t.take(p)
		if d == 0 {
			break
		}
		if p != Urgent {
			return nil, &notSent{&limitedError{until: t.opt.Now().Add(d), spared: true}}
		}
		if err := t.pause(rq.Context(), Throttle, d); err != nil {
			return nil, &notSent{err}
		}
	}
	return t.next.RoundTrip(rq)
}

// take counts a write, or returns how long it must wait.
func (t *throttle) take(p Priority) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	d := t.wait(now, p)
	if d == 0 {
		for _, w := range t.windows {
			w.sent = append(w.sent, write{now, p})
		}
	}
	return d
}

func (t *throttle) wait(now time.Time, p Priority) time.Duration {
	var d time.Duration
	for _, w := range t.windows {
		d = max(d, w.full(now, p))
	}
	return d
}

// spared returns the error that a write would get now.
func (t *throttle) spared(p Priority) error {
	if p == Urgent {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	if d := t.wait(now, p); d > 0 {
		return &limitedError{until: now.Add(d), spared: true}
	}
	return nil
}

// A window holds the writes within its span, oldest first. A negative most means no limit.
type window struct {
	span    time.Duration
	most    int
	spreads bool // limits backlog writes only, but counts all
	sent    []write
}

type write struct {
	at       time.Time
	priority Priority
}

// full returns the time until there is room.
func (w *window) full(now time.Time, p Priority) time.Duration {
	for len(w.sent) > 0 && !w.sent[0].at.Add(w.span).After(now) {
		w.sent = w.sent[1:]
	}
	most := w.most
	switch p {
	case spare:
		if most < 0 {
			return 0
		}
		return w.fullForSpare(now)
	case Backlog:
		most = max(1, w.most*2/3)
	case Routine:
		most = max(1, w.most*5/6)
	}
	if w.most < 0 || w.spreads && p != Backlog || len(w.sent) < most {
		return 0
	}
	return w.sent[len(w.sent)-most].at.Add(w.span).Sub(now)
}

// fullForSpare returns when to ask again. If other writes fill the window by then, the write may be
// refused again.
func (w *window) fullForSpare(now time.Time) time.Duration {
	spares := 0
	for _, s := range w.sent {
		if s.priority == spare {
			spares++
		}
	}
	others := len(w.sent) - spares
	if 3*(spares+1) <= w.most-others {
		return 0
	}
	if len(w.sent) == 0 { // the limit is too small for any spare write
		return w.span
	}
	return w.sent[0].at.Add(w.span).Sub(now)
}

// turn sends one write at a time, as GitHub asks of its clients. Reads do not wait. A turn lasts
// until the write has succeeded or finally failed, so that writes happen in the order in which they
// began.
type turn struct {
	next     http.RoundTripper
	throttle *throttle
	held     chan struct{}
}

func newTurn(next http.RoundTripper, t *throttle) *turn {
	return &turn{next: next, throttle: t, held: make(chan struct{}, 1)}
}

func (t *turn) RoundTrip(rq *http.Request) (*http.Response, error) {
	if !writes(rq) {
		return t.next.RoundTrip(rq)
	}
	// Do not queue behind a write that waits for room.
	if p := priorityOf(rq.Context()); p != Urgent {
		if err := t.throttle.spared(p); err != nil {
			return nil, &notSent{err}
		}
	}
	select {
	case t.held <- struct{}{}:
		defer func() { <-t.held }()
	case <-rq.Context().Done():
		return nil, rq.Context().Err()
	}
	return t.next.RoundTrip(rq)
}
