// Package scheduler decides which job a runner gets: in what order jobs go, who gets one, when a lease has run out, and what
// holds a job back. It is a state without clock, lock or disk: every call is told the time, so that a day of a fleet can be
// played in a second. What is true of a job is the journal's; this is the journal's memory of it.
//
// # The order
//
// Jobs go by class: the merge queue's first, then those of pull requests, of commands, of pushes, of submissions, of sweeps. A job
// that waits rises by a class an hour, up to the pull requests': so nothing waits for good, and a backlog never stands before the
// merge queue. Where the merge queue alone would fill the runners, every eighth job is another's. Submissions never rise, because
// agents submit without end; while one waits, every sixteenth job is a submission.
//
// Among equals, whoever has had least of the runners goes first: between repositories, and within one between authors.
// What counts is the time at runners of one kind (those that take the same labels), as it is expected when a job is handed
// out and corrected when it ends. Who had nothing to do for a while has no more of a claim than the others. An author's own
// jobs go in the order in which they came.
package scheduler

import (
	"slices"
	"strings"
	"time"
)

// leasesAtMost is how often a job is handed out to runners that take it and are never heard of again.
const leasesAtMost = 3

// A Job is work for a runner, in what its turn depends on.
type Job struct {
	ID     string    `json:"id"`
	Class  Class     `json:"class,omitempty"`
	Repo   string    `json:"repo,omitempty"`
	Author string    `json:"author,omitempty"`
	Kernel string    `json:"kernel"`          // its name within the repository
	Labels []string  `json:"labels"`          // of the runners that may take it, most wanted first
	Build  string    `json:"build,omitempty"` // label of the runners that compile it first, where there are any; "" leaves that to the one that measures
	Queued time.Time `json:"-"`               // the store knows when it was written
}

// A Waiter waits for a job of one of the labels or, with none, for one that was lost too often.
type Waiter struct {
	Labels []string
	kind   string // of them, once it asks
}

// An Offer is a job for somebody who asked. It is nobody else's until Lease or Decline.
type Offer struct {
	To  *Waiter
	Job string
}

// A Queue knows the unfinished jobs and who waits for one.
type Queue struct {
	Limits        Limits
	AgingInterval time.Duration // how long a job waits before it goes up a class; an hour unless given

	jobs          []*item // in the order in which they came
	byID          map[string]*item
	asking        []*Waiter
	shares        map[turn]*shares
	streak        map[string]int // by kind: jobs of the merge queue in a row, while others waited
	passed        map[string]int // by kind: other jobs in a row, while a submission waited
	spent         map[string]spent
	past          map[work]durations
	forecastError ForecastError
	waited        map[Class]Histogram

	builders map[string]time.Time // by label: when one was last here that compiles
}

// An item is a job and who has it.
type item struct {
	Job
	labels  []string  // see labelsOf
	offered *charge   // nil while nobody decides on an offer of it
	free    time.Time // nobody gets it before: the lease lasts, or it was given back for later
	lease   *lease    // nil while nobody has it
	losses  int       // leases that ran out before this one
	built   bool      // nobody compiles it any more: it was done, or went wrong
	told    time.Time // when it was first said to begin; zero if nobody asked
	asked   time.Time // when that was said
}

// A lease is a runner's hold on a job. Nobody holds what is written down as failed.
type lease struct {
	holder string
	labels []string
	label  string // under which it got it
	since  time.Time
	heard  time.Time
	acked  bool // the holder knows of it

	charge
}

// New is a queue without jobs.
func New(limits Limits) *Queue {
	return &Queue{
		Limits: limits, AgingInterval: time.Hour, byID: map[string]*item{}, shares: map[turn]*shares{}, streak: map[string]int{}, passed: map[string]int{},
		spent: map[string]spent{}, past: map[work]durations{}, builders: map[string]time.Time{}, waited: map[Class]Histogram{},
	}
}

// lost tells how many leases ran out, once the job is free. One whose holder never spoke of it may have been lost on its way: whoever
// writes the leases down says when there were too many of those.
func (i *item) lost() int {
	if i.lease != nil && i.lease.holder != "" && i.lease.acked && !i.building() {
		return i.losses + 1
	}
	return i.losses
}

// waits tells whether nobody works on it.
func (i *item) waits(now time.Time) bool { return i.lease == nil || !now.Before(i.free) }

// Has tells whether a job of that id is unfinished.
func (q *Queue) Has(id string) bool { return q.byID[id] != nil }

// Add takes a job in; one of the same id that came earlier stays.
func (q *Queue) Add(j Job) {
	if q.Has(j.ID) {
		return
	}
	i := &item{Job: j, labels: labelsOf(j)}
	q.byID[j.ID] = i
	q.jobs = append(q.jobs, i)
}

// Remove says that a job was finished, or that nobody wants it any more, and returns what its last lease cost.
func (q *Queue) Remove(id string, finished bool, now time.Time) (Use, bool) {
	i := q.byID[id]
	if i == nil {
		return Use{}, false
	}
	l := i.lease
	use, used := q.end(i, now)
	if used && finished {
		use.Whole = true
		if l.measured > 0 {
			q.forecastError.Took.add(l.measured, use.Took)
		}
		q.learn(use)
	}
	q.takeBack(i)
	q.forget(i)
	return use, used
}

func (q *Queue) forget(i *item) {
	delete(q.byID, i.ID)
	q.jobs = slices.DeleteFunc(q.jobs, func(other *item) bool { return other == i })
}

// Ask has somebody wait for a job, until an offer or Leave.
func (q *Queue) Ask(a *Waiter) {
	a.kind = kindOf(a.Labels)
	q.asking = append(q.asking, a)
}

// Withdraw ends that.
func (q *Queue) Withdraw(a *Waiter) {
	q.asking = slices.DeleteFunc(q.asking, func(other *Waiter) bool { return other == a })
}

// Lease says that the offer was taken up, and until when the holder may be silent.
func (q *Queue) Lease(id, holder string, labels []string, losses int, now, until time.Time) {
	i := q.byID[id]
	if i == nil {
		return
	}
	if holder != "" && i.lease == nil && losses == 0 {
		h := q.waited[i.Class]
		h.add(0, now.Sub(i.Queued))
		q.waited[i.Class] = h
	}
	q.hand(i, holder, labels, losses, now, until)
}

// hand gives the job to a holder.
func (q *Queue) hand(i *item, holder string, labels []string, losses int, now, until time.Time) {
	i.giveUpBuild()
	q.end(i, now) // of whoever was lost
	if i.offered == nil {
		i.offered = q.charge(i, labels, now)
	}
	i.lease = &lease{holder: holder, labels: labels, label: i.labelFor(labels), since: now, heard: now, charge: *i.offered}
	i.offered, i.losses, i.free = nil, losses, until
	if holder != "" {
		if !i.told.IsZero() {
			q.forecastError.Began.add(i.told.Sub(i.asked), now.Sub(i.asked))
			i.told = time.Time{}
		}
	}
}

// Resume says that a job was handed out before this process began.
func (q *Queue) Resume(id, holder, label string, losses int, since, now, until time.Time) {
	if i := q.byID[id]; i != nil {
		q.hand(i, holder, []string{label}, losses, now, until)
		i.lease.label, i.lease.since = label, since
	}
}

// Lost says that leases of a job ran out before this process began.
func (q *Queue) Lost(id string, losses int) {
	if i := q.byID[id]; i != nil {
		i.losses = losses
	}
}

// Ack says that the holder knows of its lease.
func (q *Queue) Ack(id string) {
	if i := q.byID[id]; i != nil && i.lease != nil {
		i.lease.acked = true
	}
}

// Acked tells whether the holder was heard since the job was handed to it, or since this process began.
func (q *Queue) Acked(id string) bool {
	i := q.byID[id]
	return i != nil && i.lease != nil && i.lease.acked
}

// Extend says that the holder was heard.
func (q *Queue) Extend(id string, now, until time.Time) {
	if i := q.byID[id]; i != nil && i.lease != nil {
		i.free, i.lease.heard, i.lease.acked = until, now, true
	}
}

// ShortenLease says that the holder may be gone: if it is not heard before then, it is.
func (q *Queue) ShortenLease(id string, until time.Time) {
	if i := q.byID[id]; i != nil && i.lease != nil && until.Before(i.free) {
		i.free = until
	}
}

// Built says that a job is compiled no more before it is measured.
func (q *Queue) Built(id string) {
	if i := q.byID[id]; i != nil {
		i.built = true
	}
}

// Release says that the holder gave the job back, to be handed out from then on, and returns what the lease cost.
func (q *Queue) Release(id string, now, from time.Time) (Use, bool) {
	i := q.byID[id]
	if i == nil {
		return Use{}, false
	}
	use, used := q.end(i, now)
	i.free = from
	return use, used
}

// Decline says that an offer was not taken up.
func (q *Queue) Decline(id string, from time.Time) {
	if i := q.byID[id]; i != nil {
		q.takeBack(i)
		if from.After(i.free) {
			i.free = from
		}
	}
}

// A JobStatus is an unfinished job and whether anybody works on it.
type JobStatus struct {
	Job
	Wants []string // labels of those who may have it next
	Waits bool
	Label string    // under which its holder got it
	Free  time.Time // nobody else gets it before
}

// Statuses lists all jobs in the order in which they came.
func (q *Queue) Statuses(now time.Time) []JobStatus {
	var all []JobStatus
	for _, i := range q.jobs {
		s := JobStatus{Job: i.Job, Wants: slices.Clone(i.wants()), Waits: i.waits(now), Free: i.free}
		if i.lease != nil {
			s.Label = i.lease.label
		}
		all = append(all, s)
	}
	return all
}

// Cost is what the job's lease has cost until now, and false if it has none.
func (q *Queue) Cost(id string, now time.Time) (Use, bool) {
	if i := q.byID[id]; i != nil && i.lease != nil && i.lease.holder != "" {
		return i.use(now), true
	}
	return Use{}, false
}

// end takes the lease away and books what it cost.
func (q *Queue) end(i *item, now time.Time) (Use, bool) {
	if i.lease == nil {
		return Use{}, false
	}
	l := i.lease
	use := i.use(now)
	i.lease = nil
	if l.holder == "" {
		q.correct(i, l.charge, -l.expected)
		return Use{}, false
	}
	q.correct(i, l.charge, use.Took-l.expected)
	q.Book(use)
	return use, true
}

// use is what the lease has cost: up to the last word, where it has run out.
func (i *item) use(now time.Time) Use {
	until := now
	if !now.Before(i.free) {
		until = i.lease.heard
	}
	return Use{Repo: i.Repo, Kernel: i.Kernel, Label: i.lease.label, Ended: until, Took: max(0, until.Sub(i.lease.since))}
}

// Match brings jobs and askers together: whoever asks gets the job whose turn it is, unless another who waits has a label
// that the job wants more. It also says when to look again though nothing was heard; never is zero.
func (q *Queue) Match(now time.Time) (offers []Offer, again time.Time) {
	nothing := map[string]bool{} // for runners of this kind
	q.noteBuilders(now)
	for n := 0; n < len(q.asking); {
		kind := q.asking[n].kind
		if nothing[kind] {
			n++
			continue
		}
		i := q.next(q.asking[n].Labels, kind, now)
		if i == nil {
			nothing[kind] = true
			n++
			continue
		}
		to := q.asking[q.first(i, n)]
		q.took(i, kind, now)
		i.offered = q.charge(i, to.Labels, now)
		q.Withdraw(to)
		offers = append(offers, Offer{To: to, Job: i.ID})
		n = 0
	}
	if len(q.asking) == 0 {
		return offers, time.Time{}
	}
	used := q.inUse(now)
	for _, i := range q.jobs {
		at := i.free
		if held := q.held(i, used, now); held != nil && i.offered == nil && i.waits(now) {
			at = held.Until // what else may end it is heard of
		}
		if kept := q.keptUntil(i, now); kept.After(at) {
			at = kept
		}
		if i.offered == nil && now.Before(at) && (again.IsZero() || at.Before(again)) {
			again = at
		}
	}
	return offers, again
}

// first is who gets the job, of all who wait: n asked for it.
func (q *Queue) first(i *item, n int) int {
	if i.lost() >= leasesAtMost {
		return n
	}
	for _, label := range i.wants() {
		if slices.Contains(q.asking[n].Labels, label) {
			return n
		}
		if at := slices.IndexFunc(q.asking, func(a *Waiter) bool { return slices.Contains(a.Labels, label) }); at >= 0 {
			return at
		}
	}
	return n
}

// labelFor is the label that the job wants most of those that a runner has.
func (i *item) labelFor(has []string) string { return firstOf(i.wants(), has) }

// firstOf is the first label that a runner has of those that are wanted.
func firstOf(wanted, has []string) string {
	if i := slices.IndexFunc(wanted, func(l string) bool { return slices.Contains(has, l) }); i >= 0 {
		return wanted[i]
	}
	return ""
}

// kindOf is what runners of the same labels have in common.
func kindOf(labels []string) string {
	return strings.Join(slices.Sorted(slices.Values(labels)), ",")
}
