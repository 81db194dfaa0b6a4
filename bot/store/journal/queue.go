package journal

import (
	"context"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/queue"
)

// A line is the jobs that are unfinished and those who wait for one, in memory. Package queue says whose turn it is; here
// is the clock for it, and the way to those who wait. It says whom to ask the record for a job; the record decides.
type line struct {
	mu      sync.Mutex
	turns   *queue.Queue
	jobs    map[string]*entry
	waiting map[*queue.Asker]chan *entry // each holds one
	timer   *time.Timer
	closed  bool

	places map[string]queue.Place // as of then
	placed time.Time
}

// An entry is a job in line. But for heard, which the line's lock guards, it never changes.
type entry struct {
	Job
	seq    uint64
	queued time.Time
	heard  time.Time // when the holder was last heard, by the clock that people see
}

func newLine(limits queue.Limits) *line {
	return &line{turns: queue.New(limits), jobs: map[string]*entry{}, waiting: map[*queue.Asker]chan *entry{}}
}

func (l *line) get(id string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[id]
}

// add takes a job in; one of the same id that came earlier stays. With it comes what is known of its leases.
func (l *line) add(e *entry, known func(*queue.Queue)) {
	l.change(func(q *queue.Queue) {
		if l.jobs[e.ID] != nil {
			return
		}
		l.jobs[e.ID] = e
		q.Add(queue.Job{ID: e.ID, Class: e.Class, Repo: e.Repo, Author: e.Author, Kernel: e.Kernel, Labels: e.Labels, Build: e.Build, Queued: e.queued})
		if known != nil {
			known(q)
		}
	})
}

func (l *line) remove(e *entry, done bool) {
	l.change(func(q *queue.Queue) {
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
	l.turns = queue.New(l.turns.Limits)
	for asker := range l.waiting {
		l.turns.Ask(asker)
	}
}

// change says what became of a job.
func (l *line) change(do func(*queue.Queue)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do(l.turns)
	l.match()
}

// wait returns a job for one of the labels, which the caller must then ask the record for.
func (l *line) wait(ctx context.Context, labels []string) (*entry, error) {
	asker, got := &queue.Asker{Labels: labels}, make(chan *entry, 1)
	l.change(func(q *queue.Queue) {
		l.waiting[asker] = got
		q.Ask(asker)
	})
	select {
	case e := <-got:
		return e, nil
	case <-ctx.Done():
	}
	l.change(func(q *queue.Queue) {
		delete(l.waiting, asker)
		q.Leave(asker)
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
		l.timer = time.AfterFunc(time.Until(again), func() { l.change(func(*queue.Queue) {}) })
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

func (l *line) standings() []queue.Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns.Standings(time.Now())
}

// cost is what a job's lease has cost until now, for the record.
func (l *line) cost(id string) (use queue.Use, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns.Cost(id, time.Now())
}

// foresight is how long a forecast is good for.
const foresight = 5 * time.Second

// forecast is called with the lock held. What it returns is never changed.
func (l *line) forecast(now time.Time) map[string]queue.Place {
	if l.places == nil || now.Sub(l.placed) > foresight {
		l.places, l.placed = l.turns.Places(now), now
	}
	return l.places
}
