package controller

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

// A workQueue handles keys concurrently, each key in one goroutine at a time. A key that is added while it is handled is
// handled once more afterwards, so no event is missed. A failed key is requeued with exponential backoff.
//
// Each account has its own slots, and each call has a deadline, so an account that waits for GitHub's rate limit or a slow
// answer delays no other account. Strangers share a few separate slots, and so does less urgent work.
type workQueue[K comparable] struct {
	name    string // in log messages
	handle  func(context.Context, K) error
	lane    func(context.Context, K) (lane, error) // must not call GitHub
	leads   func() bool                            // whether this bot is still the leader
	timeout time.Duration                          // of one call
	slots   int                                    // per account
	backoff time.Duration                          // the first pause
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	ctx    context.Context // nil until start
	tasks  map[K]*task
	shares map[lane]*slotPool
	held   heldBack[K]
	all    sync.WaitGroup
}

// A task is a key that is handled, waits for a slot, or is in backoff.
type task struct {
	dirty    bool // the key was added again since the call began
	running  bool
	failures int
	pause    *time.Timer
}

// A lane names a pool of slots: an account's, or the account's slots for strangers or for less urgent work.
type lane struct {
	account   string
	strangers bool
	priority  client.Priority
}

// A slotPool holds the slots of a lane while any task holds or wants one.
type slotPool struct {
	slots chan struct{}
	users int
}

// requeueAt is returned by work that did not fail and must run again at a given time.
type requeueAt time.Time

func (l requeueAt) Error() string { return "to be done at " + time.Time(l).Format(time.RFC3339) }

func (w *workQueue[K]) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
	w.held.name, w.held.log, w.held.now = w.name, w.log, w.now
	for key, t := range w.tasks {
		w.launch(key, t)
	}
}

// drain waits, after the context has ended, until no call is running. It returns the keys whose calls may have been cut
// short. The queue can be started again afterwards.
func (w *workQueue[K]) drain() (cut []K) {
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
	w.held.reset()
	return cut
}

// add enqueues a key. It ends a backoff.
func (w *workQueue[K]) add(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tasks[key]
	switch {
	case t == nil:
		w.insert(key)
	case t.running:
		t.dirty = true
	case t.pause != nil && t.pause.Stop():
		w.launch(key, t)
	}
}

// addIfAbsent enqueues a key unless the queue has it already. A backoff continues.
func (w *workQueue[K]) addIfAbsent(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks[key] == nil {
		w.insert(key)
	}
}

// endPauses handles keys again that are in backoff. Keys that are handled now get no pause longer than the first.
func (w *workQueue[K]) endPauses(of func(K) bool) {
	w.mu.Lock()
	var ended []K
	for key := range w.tasks {
		if of(key) {
			ended = append(ended, key)
		}
	}
	w.mu.Unlock()
	for _, key := range ended {
		w.add(key)
	}
}

// insert is called with the lock held.
func (w *workQueue[K]) insert(key K) {
	if w.tasks == nil {
		w.tasks, w.shares = map[K]*task{}, map[lane]*slotPool{}
	}
	t := &task{}
	w.tasks[key] = t
	if w.ctx != nil {
		w.launch(key, t)
	}
}

// launch is called with the lock held.
func (w *workQueue[K]) launch(key K, t *task) {
	if w.ctx.Err() != nil {
		return
	}
	t.running, t.pause = true, nil
	w.all.Go(func() { w.run(key, t) })
}

func (w *workQueue[K]) run(key K, t *task) {
	for {
		err := w.process(key)
		if !w.leads() || w.ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		if err != nil {
			w.requeue(key, t, err)
			w.mu.Unlock()
			return
		}
		t.failures = 0
		w.held.release(key)
		if !t.dirty {
			delete(w.tasks, key)
			w.mu.Unlock()
			return
		}
		t.dirty = false
		w.mu.Unlock()
	}
}

// strangerSlots is the number of concurrent calls for strangers per account.
const strangerSlots = 2

// process handles a key in a slot of its lane.
func (w *workQueue[K]) process(key K) error {
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
		a = &slotPool{slots: make(chan struct{}, slots)}
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
	ctx, cancel := context.WithTimeout(w.ctx, w.timeout)
	defer cancel()
	return w.handle(ctx, key)
}

func (w *workQueue[K]) laneOf(key K) (lane, error) {
	ctx, cancel := context.WithTimeout(w.ctx, recordTimeout)
	defer cancel()
	return w.lane(ctx, key)
}

const (
	longestPause = 2 * time.Minute
	lagFailures  = 12        // consecutive; they take ten minutes, longer than GitHub's replicas lag
	limitPause   = time.Hour // maximum for rate limits, permanent refusals, and changes that take too long to read
)

// requeue is called with the lock held.
func (w *workQueue[K]) requeue(key K, t *task, err error) {
	var at requeueAt
	var refusal *client.Error
	errors.As(err, &refusal)
	t.running = false
	again := t.dirty
	t.dirty = false
	pause := min(w.backoff<<min(t.failures, 8), longestPause)
	limited := refusal != nil && !refusal.RetryAt.IsZero()
	if !limited {
		w.held.release(key)
	}
	switch {
	case errors.As(err, &at):
		if pause = time.Time(at).Sub(w.now()); again {
			pause = 0 // a new event must not wait
		}
	case limited:
		pause = min(max(pause, refusal.RetryAt.Sub(w.now())), limitPause)
		w.held.hold(key, refusal, pause)
	case (errors.Is(err, publish.ErrNotVisible) || client.NotFound(err)) && t.failures < lagFailures:
		t.failures++
		w.log.Warn("GitHub does not show a commit or a pull request yet; it is asked again", "work", w.name, "on", key, "failures", t.failures, "again_in", pause.String(), "err", err)
	default:
		t.failures++
		// A refusal lasts until people change something on GitHub, and a slow disk needs less work, not more.
		if client.IsPermanent(err) || errors.Is(err, planner.ErrSlow) {
			pause = min(w.backoff<<min(t.failures+5, 20), limitPause)
		}
		w.log.Warn("work failed and is done again", "work", w.name, "on", key, "failures", t.failures, "again_in", pause.String(), "err", err)
	}
	if again { // an event arrived meanwhile, which would have ended the backoff
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
