package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// A line is the unfinished jobs and those who wait for one, in memory. Package scheduler says whose turn it is; the line adds the
// clock, and the channels to those who wait. It says whom to ask the record for a job; the record decides.
type line struct {
	mu      sync.Mutex
	turns   *scheduler.Queue
	jobs    map[string]*entry
	waiting map[*scheduler.Waiter]chan *entry // each holds one
	timer   *time.Timer
	closed  bool

	places map[string]scheduler.Position // as of then
	placed time.Time
}

// An entry is a job in line. But for heard, which the line's lock guards, it never changes.
type entry struct {
	Job
	seq   uint64
	heard time.Time // when the holder was last heard, by the clock that people see
}

func newLine(limits scheduler.Limits) *line {
	return &line{turns: scheduler.New(limits), jobs: map[string]*entry{}, waiting: map[*scheduler.Waiter]chan *entry{}}
}

func (l *line) get(id string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[id]
}

// add takes a job in; one of the same id that came earlier stays. With it comes what is known of its leases.
func (l *line) add(e *entry, known func(*scheduler.Queue)) {
	l.change(func(q *scheduler.Queue) {
		if l.jobs[e.ID] != nil {
			return
		}
		l.jobs[e.ID] = e
		q.Add(e.Job.Job)
		if known != nil {
			known(q)
		}
	})
}

func (l *line) remove(e *entry, done bool) {
	l.change(func(q *scheduler.Queue) {
		if l.jobs[e.ID] == e {
			delete(l.jobs, e.ID)
			q.Remove(e.ID, done, time.Now())
		}
	})
}

// clear forgets all jobs, and what they cost. Whoever waits goes on waiting.
func (l *line) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs, l.places = map[string]*entry{}, nil
	l.turns = scheduler.New(l.turns.Limits)
	for asker := range l.waiting {
		l.turns.Ask(asker)
	}
}

// change says what became of a job.
func (l *line) change(do func(*scheduler.Queue)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.turns)
	l.match()
}

// wait returns a job for one of the labels, which the caller must then ask the record for.
func (l *line) wait(ctx context.Context, labels []string) (*entry, error) {
	asker, got := &scheduler.Waiter{Labels: labels}, make(chan *entry, 1)
	l.change(func(q *scheduler.Queue) {
		l.waiting[asker] = got
		q.Ask(asker)
	})
	select {
	case e := <-got:
		return e, nil
	case <-ctx.Done():
	}
	l.change(func(q *scheduler.Queue) {
		delete(l.waiting, asker)
		q.Withdraw(asker)
		select {
		case e := <-got: // at the last moment: it is the next one's
			q.Decline(e.ID, time.Time{})
		default:
		}
	})
	return nil, ctx.Err()
}

// match is called with the lock held.
func (l *line) match() {
	if l.closed {
		return
	}
	offers, again := l.turns.Match(time.Now())
	for _, o := range offers {
		l.waiting[o.To] <- l.jobs[o.Job]
		delete(l.waiting, o.To)
	}
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !again.IsZero() {
		l.timer = time.AfterFunc(time.Until(again), func() { l.change(func(*scheduler.Queue) {}) })
	}
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

func (l *line) statuses() []scheduler.JobStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns.Statuses(time.Now())
}

// cost is what a job's lease has cost until now, for the record.
func (l *line) cost(id string) (use scheduler.Use, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns.Cost(id, time.Now())
}

// foresight is how long a forecast is good for.
const foresight = 5 * time.Second

// forecast is called with the lock held. What it returns is never changed.
func (l *line) forecast(now time.Time) map[string]scheduler.Position {
	if l.places == nil || now.Sub(l.placed) > foresight {
		l.places, l.placed = l.turns.Positions(now), now
	}
	return l.places
}
