package journal

import (
	"context"
	"slices"
	"sync"
	"time"
)

// leasesAtMost is how often a job is handed out to runners that are never heard of again.
const leasesAtMost = 3

// A queue knows the unfinished jobs and who waits for one, and brings them together: the oldest job first, and of those who
// wait, whoever has the label that the job wants most. It says whom to ask the record for a job; the record decides.
type queue struct {
	mu      sync.Mutex
	jobs    []*entry // in the order in which they came
	waiting []*waiter
	timer   *time.Timer
	closed  bool
}

// An entry is a job in the queue. Its fields are guarded by the queue's lock, but for Job, seq and queued.
type entry struct {
	Job
	seq    uint64
	queued time.Time

	leased bool
	holder string    // "" for whoever writes down that it failed
	label  string    // under which the holder got it
	heard  time.Time // when the holder was last heard, by the clock that people see
	given  bool      // somebody is asking the record for it
	free   time.Time // nobody gets it before: the lease lasts, or it was given back for later
	losses int       // leases that ran out before this one
}

// A waiter is somebody who wants a job of one of the labels or, with none, one that was lost too often.
type waiter struct {
	labels []string
	got    chan *entry // holds one
}

// lost tells how many leases ran out, once the job is free.
func (e *entry) lost() int {
	if e.leased && e.holder != "" {
		return e.losses + 1
	}
	return e.losses
}

func (q *queue) index(id string) int {
	return slices.IndexFunc(q.jobs, func(e *entry) bool { return e.ID == id })
}

func (q *queue) get(id string) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.index(id); i >= 0 {
		return q.jobs[i]
	}
	return nil
}

func (q *queue) has(id string) bool { return q.get(id) != nil }

// list is the jobs as they are now.
func (q *queue) list() []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []entry
	for _, e := range q.jobs {
		all = append(all, *e)
	}
	return all
}

// add takes a job in; one of the same id that came earlier stays.
func (q *queue) add(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.index(e.ID) < 0 {
		q.jobs = append(q.jobs, e)
	}
	q.match()
}

func (q *queue) remove(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = slices.DeleteFunc(q.jobs, func(other *entry) bool { return other == e })
}

// clear forgets all jobs: another process sees to them. Whoever waits goes on waiting.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.jobs = nil
}

// change says what became of a job.
func (q *queue) change(e *entry, do func(*entry)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	do(e)
	q.match()
}

// wait returns a job for one of the labels, which the caller must then ask the record for.
func (q *queue) wait(ctx context.Context, labels []string) (*entry, error) {
	w := &waiter{labels: labels, got: make(chan *entry, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.match()
	q.mu.Unlock()
	select {
	case e := <-w.got:
		return e, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter) bool { return other == w })
	select {
	case e := <-w.got: // at the last moment: it is the next one's
		e.given = false
		q.match()
	default:
	}
	return nil, ctx.Err()
}

// match is called with the lock held.
func (q *queue) match() {
	if q.closed {
		return
	}
	now := time.Now()
	var soonest time.Time
	for _, e := range q.jobs {
		if len(q.waiting) == 0 {
			break
		}
		if e.given {
			continue
		}
		if now.Before(e.free) {
			if soonest.IsZero() || e.free.Before(soonest) {
				soonest = e.free
			}
			continue
		}
		if i := q.first(e); i >= 0 {
			e.given = true
			q.waiting[i].got <- e
			q.waiting = slices.Delete(q.waiting, i, i+1)
		}
	}
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
	if !soonest.IsZero() {
		q.timer = time.AfterFunc(soonest.Sub(now), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.match()
		})
	}
}

// first is who gets the job, of all who wait.
func (q *queue) first(e *entry) int {
	if e.lost() >= leasesAtMost {
		return slices.IndexFunc(q.waiting, func(w *waiter) bool { return len(w.labels) == 0 })
	}
	for _, label := range e.Labels {
		if i := slices.IndexFunc(q.waiting, func(w *waiter) bool { return slices.Contains(w.labels, label) }); i >= 0 {
			return i
		}
	}
	return -1
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
}
