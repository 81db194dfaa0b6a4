package keeper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// workers do one kind of work on many things: several at once, each thing by one
// goroutine at a time. Whoever has news of a thing wakes it; that it is being worked on
// makes it be worked on once more, so that no news is missed. A failure is tried again
// after a pause that grows.
//
// Each account has slots of its own, and each piece of work a deadline: whoever waits,
// for GitHub's limit or for a slow answer, holds up nobody else's. Strangers share a few
// slots apart from the others: however much they send, the others' work does not wait. So
// does what is less urgent, however much of it there is.
type workers[K comparable] struct {
	what    string // for the log
	do      func(context.Context, K) error
	lane    func(context.Context, K) (lane, error) // asks nobody outside
	leads   func() bool                            // whether this bot still does such work
	within  time.Duration                          // of one piece of work
	slots   int                                    // of one account
	backoff time.Duration                          // the first pause
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	ctx    context.Context // nil until start
	tasks  map[K]*task
	shares map[lane]*share
	all    sync.WaitGroup
}

// A task is a thing that is worked on, waits for a slot, or pauses.
type task struct {
	again    bool // there is news since it was begun
	running  bool
	failures int
	pause    *time.Timer
}

// A lane is whose slots a piece of work takes: an account's, or those that it has for strangers
// or for what is less urgent.
type lane struct {
	account   string
	strangers bool
	priority  client.Priority
}

// A share is the slots of a lane; it is there while somebody holds or wants one.
type share struct {
	slots chan struct{}
	users int
}

// later is the error of work that is to be done at a time, and did not fail.
type later time.Time

func (l later) Error() string { return "to be done at " + time.Time(l).Format(time.RFC3339) }

func (w *workers[K]) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	for key, t := range w.tasks {
		w.launch(key, t)
	}
}

// end returns, once the work's context has ended, when nothing is worked on any more: with
// what was, and may have been cut short. Then they may start anew.
func (w *workers[K]) end() (cut []K) {
	w.mu.Lock()
	for _, t := range w.tasks {
		if t.pause != nil {
			t.pause.Stop()
		}
	}
	w.mu.Unlock()
	w.all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, t := range w.tasks {
		if t.running {
			cut = append(cut, key)
		}
	}
	w.ctx, w.tasks, w.shares = nil, nil, nil
	return cut
}

func (w *workers[K]) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tasks) == 0
}

// wake has a thing worked on soon, because there is news of it. A pause ends.
func (w *workers[K]) wake(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tasks[key]
	switch {
	case t == nil:
		w.begin(key)
	case t.running:
		t.again = true
	case t.pause != nil && t.pause.Stop():
		w.launch(key, t)
	}
}

// remind has a thing worked on unless somebody sees to it already: a pause goes on.
func (w *workers[K]) remind(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks[key] == nil {
		w.begin(key)
	}
}

// begin is called with the lock held.
func (w *workers[K]) begin(key K) {
	if w.tasks == nil {
		w.tasks, w.shares = map[K]*task{}, map[lane]*share{}
	}
	t := &task{}
	w.tasks[key] = t
	if w.ctx != nil {
		w.launch(key, t)
	}
}

// launch is called with the lock held.
func (w *workers[K]) launch(key K, t *task) {
	if w.ctx.Err() != nil {
		return
	}
	t.running, t.pause = true, nil
	w.all.Go(func() { w.run(key, t) })
}

func (w *workers[K]) run(key K, t *task) {
	for {
		err := w.once(key)
		if !w.leads() || w.ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if err != nil {
			w.rest(key, t, err)
			w.mu.Unlock()
			return
		}
		t.failures = 0
		if !t.again {
			delete(w.tasks, key)
			w.mu.Unlock()
			return
		}
		t.again = false
		w.mu.Unlock()
	}
}

// strangerSlots is how many pieces of work for strangers an account does at once.
const strangerSlots = 2

// once works on a thing in a slot of its lane.
func (w *workers[K]) once(key K) error {
	in, err := w.laneOf(key)
	if err != nil {
		return err
	}
	slots := w.slots
	if in.priority != client.Urgent {
		slots = max(1, slots/4)
	}
	if in.strangers {
		slots = min(slots, strangerSlots)
	}
	w.mu.Lock()
	a := w.shares[in]
	if a == nil {
		a = &share{slots: make(chan struct{}, slots)}
		w.shares[in] = a
	}
	a.users++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.users--; a.users == 0 {
			delete(w.shares, in)
		}
	}()
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.within)
	defer cancel()
	return w.do(ctx, key)
}

func (w *workers[K]) laneOf(key K) (lane, error) {
	ctx, cancel := context.WithTimeout(w.ctx, noteTime)
	defer cancel()
	return w.lane(ctx, key)
}

const (
	longestPause = 2 * time.Minute
	lagFailures  = 12        // in a row, which take ten minutes: GitHub's replicas have caught up long before
	limitPause   = time.Hour // at most, for GitHub's limit, what GitHub refuses, and changes that take too long to read
)

// rest is called with the lock held.
func (w *workers[K]) rest(key K, t *task, err error) {
	var at later
	var refusal *client.Error
	errors.As(err, &refusal)
	t.running = false
	again := t.again
	t.again = false
	pause := min(w.backoff<<min(t.failures, 8), longestPause)
	switch {
	case errors.As(err, &at):
		if pause = time.Time(at).Sub(w.now()); again {
			pause = 0 // what came may not be put off
		}
	case refusal != nil && !refusal.RetryAt.IsZero():
		pause = min(max(pause, refusal.RetryAt.Sub(w.now())), limitPause)
		w.log.Info("GitHub asks for patience", "work", w.what, "on", key, "again_in", pause.String(), "err", err)
	case (errors.Is(err, publish.ErrUnseen) || client.NotFound(err)) && t.failures < lagFailures:
		t.failures++
		w.log.Warn("GitHub does not show a commit or a pull request yet; it is asked again", "work", w.what, "on", key, "failures", t.failures, "again_in", pause.String(), "err", err)
	default:
		t.failures++
		// What GitHub refuses may be different once people have changed something there, and
		// a slow disk needs no more work.
		if client.Final(err) || errors.Is(err, planner.ErrSlow) {
			pause = min(w.backoff<<min(t.failures+5, 20), limitPause)
		}
		w.log.Warn("work failed and is done again", "work", w.what, "on", key, "failures", t.failures, "again_in", pause.String(), "err", err)
	}
	if again { // news came meanwhile, which would have ended the pause
		pause = min(pause, w.backoff)
	}
	t.pause = time.AfterFunc(pause, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !t.running && w.tasks[key] == t {
			w.launch(key, t)
		}
	})
}
