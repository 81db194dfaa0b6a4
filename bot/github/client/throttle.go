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
//
// A spare write never waits. It is let through while spare writes take no more than a
// third of what the others leave, and refused otherwise: the fuller the hour, the fewer
// there are, and a verdict finds room at any time.
type throttle struct {
	*env
	next    http.RoundTripper
	mu      sync.Mutex
	windows []*window
}

// contentWindows are GitHub's two limits, and one between them that spreads spare writes
// over the hour.
func contentWindows(opt Options) []*window {
	return []*window{{span: time.Minute, most: opt.ContentPerMinute}, {span: time.Hour, most: opt.ContentPerHour},
		{span: 10 * time.Minute, most: opt.ContentPerHour / 6, spareOnly: true}}
}

type spareKey struct{}

// Spare marks what is written in a context as something that can be left out, such as
// how far a measurement is. Where there is little room for writes it is: the error is
// ErrSpared then, and nothing was sent.
func Spare(ctx context.Context) context.Context { return context.WithValue(ctx, spareKey{}, true) }

func isSpare(ctx context.Context) bool { return ctx.Value(spareKey{}) != nil }

// Spared is an error that is ErrSpared where a spare write in the repository would be
// left out: it saves whoever prepares one the trouble.
func (h *GitHub) Spared(ctx context.Context, repo string) error {
	c, err := h.clientOf(ctx, repo)
	if err == nil {
		err = c.throttle.spared()
	}
	return h.explain(op{name: "write what can be left out"}, repo, nil, err)
}

func (t *throttle) RoundTrip(rq *http.Request) (*http.Response, error) {
	for writes(rq) {
		d := t.take(isSpare(rq.Context()))
		if d == 0 {
			break
		}
		if isSpare(rq.Context()) {
			return nil, &notSent{&limitedError{until: t.opt.Now().Add(d), spared: true}}
		}
		if err := t.pause(rq.Context(), Throttle, d); err != nil {
			return nil, &notSent{err}
		}
	}
	return t.next.RoundTrip(rq)
}

// take counts a write, or says how long it must wait.
func (t *throttle) take(spare bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	d := t.wait(now, spare)
	if d == 0 {
		for _, w := range t.windows {
			w.sent = append(w.sent, write{now, spare})
		}
	}
	return d
}

func (t *throttle) wait(now time.Time, spare bool) time.Duration {
	var d time.Duration
	for _, w := range t.windows {
		d = max(d, w.full(now, spare))
	}
	return d
}

// spared is the error that a spare write would get now.
func (t *throttle) spared() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	if d := t.wait(now, true); d > 0 {
		return &limitedError{until: now.Add(d), spared: true}
	}
	return nil
}

// A window holds what was sent within the span, oldest first. A negative most is no
// limit.
type window struct {
	span      time.Duration
	most      int
	spareOnly bool // other writes pass, and are counted
	sent      []write
}

type write struct {
	at    time.Time
	spare bool
}

// full is the time until there is room.
func (w *window) full(now time.Time, spare bool) time.Duration {
	for len(w.sent) > 0 && !w.sent[0].at.Add(w.span).After(now) {
		w.sent = w.sent[1:]
	}
	switch {
	case w.most < 0:
		return 0
	case spare:
		return w.fullForSpare(now)
	case w.spareOnly || len(w.sent) < w.most:
		return 0
	}
	return w.sent[len(w.sent)-w.most].at.Add(w.span).Sub(now)
}

// fullForSpare says when to ask again: where others have filled the window, the answer
// may be no once more.
func (w *window) fullForSpare(now time.Time) time.Duration {
	spares := 0
	for _, s := range w.sent {
		if s.spare {
			spares++
		}
	}
	others := len(w.sent) - spares
	if 3*(spares+1) <= w.most-others {
		return 0
	}
	if len(w.sent) == 0 { // a limit so small that it leaves no third
		return w.span
	}
	return w.sent[0].at.Add(w.span).Sub(now)
}

// turn lets one write at a time through, as GitHub asks of its clients; reads
// pass by. The turn lasts until the write has succeeded or failed for good, so that
// writes happen in the order in which they were begun.
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
	if isSpare(rq.Context()) { // not to wait behind one that waits for room
		if err := t.throttle.spared(); err != nil {
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
