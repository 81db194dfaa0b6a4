package keeper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
)

// A tender looks after changes: several at once, each by one goroutine at a time.
// A poke while a change is being looked after makes it be looked at once more, so
// that no news is missed; a failure is tried again after a pause that grows.
type tender struct {
	tend    func(context.Context, change.ID) error
	backoff time.Duration // the first pause
	log     *slog.Logger

	mu    sync.Mutex
	ctx   context.Context // nil until start
	slots chan struct{}
	busy  map[change.ID]*tending
	all   sync.WaitGroup
}

type tending struct {
	again    bool
	failures int
	waiting  *time.Timer
	running  bool
}

// How many changes are looked after at once. Each mostly waits for GitHub.
const tenders = 8

func (t *tender) start(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.slots = ctx, make(chan struct{}, tenders)
	for id, now := range t.busy {
		t.launch(id, now)
	}
}

// wait returns when nothing is being looked after any more.
func (t *tender) wait() {
	t.mu.Lock()
	for _, now := range t.busy {
		if now.waiting != nil {
			now.waiting.Stop()
		}
	}
	t.mu.Unlock()
	t.all.Wait()
}

func (t *tender) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.busy) == 0
}

// poke has a change looked at soon.
func (t *tender) poke(id change.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.busy[id]
	switch {
	case now == nil:
		now = &tending{}
		t.busy[id] = now
	case now.running:
		now.again = true
		return
	case now.waiting != nil && !now.waiting.Stop():
		return // its timer has just fired
	}
	if t.ctx != nil {
		t.launch(id, now)
	}
}

// launch is called with the lock held.
func (t *tender) launch(id change.ID, now *tending) {
	if t.ctx.Err() != nil {
		return
	}
	now.running, now.waiting = true, nil
	t.all.Go(func() { t.run(id, now) })
}

func (t *tender) run(id change.ID, now *tending) {
	for {
		select {
		case t.slots <- struct{}{}:
		case <-t.ctx.Done():
			return
		}
		err := t.tend(t.ctx, id)
		<-t.slots
		if t.ctx.Err() != nil {
			return
		}
		t.mu.Lock()
		if err != nil {
			t.pause(id, now, err)
			t.mu.Unlock()
			return
		}
		now.failures = 0
		if !now.again {
			delete(t.busy, id)
			t.mu.Unlock()
			return
		}
		now.again = false
		t.mu.Unlock()
	}
}

// pause is called with the lock held.
func (t *tender) pause(id change.ID, now *tending, err error) {
	now.failures++
	wait := min(t.backoff<<min(now.failures-1, 8), 2*time.Minute)
	var limited *client.Error
	if errors.As(err, &limited) && !limited.RetryAt.IsZero() {
		wait = min(max(wait, time.Until(limited.RetryAt)), time.Hour)
	}
	t.log.Warn("looking after a change failed", "change", id.String(), "failures", now.failures, "again_in", wait.String(), "err", err)
	now.running, now.again = false, false
	now.waiting = time.AfterFunc(wait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !now.running && t.busy[id] == now {
			t.launch(id, now)
		}
	})
}
