package client

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// throttle keeps writes a little below the pace at which GitHub blocks an
// identity. It counts what was sent in the last minute and hour instead of
// dripping tokens into a bucket: a bucket that is full allows nearly twice its
// size within a minute, and one small enough to be safe makes a reply wait long
// before there is a need.
type throttle struct {
	*env
	next    http.RoundTripper
	mu      sync.Mutex
	windows []*window
}

func contentWindows(opt Options) []*window {
	return []*window{{span: time.Minute, most: opt.ContentPerMinute}, {span: time.Hour, most: opt.ContentPerHour}}
}

func (t *throttle) RoundTrip(rq *http.Request) (*http.Response, error) {
	for writes(rq) {
		d := t.take()
		if d == 0 {
			break
		}
		if err := t.pause(rq.Context(), Wait{Reason: Throttle, For: d}); err != nil {
			return nil, &notSent{err}
		}
	}
	return t.next.RoundTrip(rq)
}

// take counts a write, or says how long it must wait.
func (t *throttle) take() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	var d time.Duration
	for _, w := range t.windows {
		d = max(d, w.full(now))
	}
	if d == 0 {
		for _, w := range t.windows {
			w.sent = append(w.sent, now)
		}
	}
	return d
}

// A window holds the times of what was sent within the span, oldest first. A
// negative most is no limit.
type window struct {
	span time.Duration
	most int
	sent []time.Time
}

// full is the time until there is room.
func (w *window) full(now time.Time) time.Duration {
	for len(w.sent) > 0 && !w.sent[0].Add(w.span).After(now) {
		w.sent = w.sent[1:]
	}
	if w.most < 0 || len(w.sent) < w.most {
		return 0
	}
	return w.sent[len(w.sent)-w.most].Add(w.span).Sub(now)
}

// turn lets one write at a time through, as GitHub asks of its clients; reads
// pass by. The turn lasts until the write has succeeded or failed for good, so that
// writes happen in the order in which they were begun.
type turn struct {
	next http.RoundTripper
	held chan struct{}
}

func newTurn(next http.RoundTripper) *turn { return &turn{next: next, held: make(chan struct{}, 1)} }

func (t *turn) RoundTrip(rq *http.Request) (*http.Response, error) {
	if !writes(rq) {
		return t.next.RoundTrip(rq)
	}
	if err := t.take(rq.Context()); err != nil {
		return nil, err
	}
	defer func() { <-t.held }()
	return t.next.RoundTrip(rq)
}

func (t *turn) take(ctx context.Context) error {
	select {
	case t.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
