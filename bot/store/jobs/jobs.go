package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A Job is work for a runner: what the scheduler orders by, and the bundle to work on.
type Job struct {
	scheduler.Job
	Bundle string `json:"bundle"` // name in Bundles, which is its SHA-256 in hex
}

// A Backlog says how much work there is for the runners of one label. A job of several labels waits in each.
type Backlog struct {
	Label   string
	Waiting int       // nobody works on them
	Leased  int       // handed to a runner of this label and neither finished nor expired
	Oldest  time.Time // when the oldest unfinished job was enqueued
}

type leaseState string

const (
	leased    leaseState = "leased"
	released  leaseState = "released"
	finished  leaseState = "finished"
	cancelled leaseState = "cancelled"
)

// leaseRecord decides who holds a job. Every change is conditional on the revision that the writer has seen.
type leaseRecord struct {
	Seq   uint64     `json:"seq"` // which message; an id may be enqueued again after its job is gone
	Token uint64     `json:"token"`
	State leaseState `json:"state"`

	// While it is leased: to whom, as a runner of which label, and since when.
	Holder string    `json:"holder,omitempty"`
	Label  string    `json:"label,omitempty"`
	Since  time.Time `json:"since,omitzero"`

	Losses []Expiry `json:"losses,omitempty"`
	Unread int      `json:"unread,omitempty"` // leases that no holder spoke of, and that are no losses
	Built  *Built   `json:"built,omitempty"`  // nil while the job may be compiled before it is measured

	Uses  []scheduler.Use `json:"uses,omitempty"`  // what its leases have cost
	Epoch uint64          `json:"epoch,omitempty"` // of the process that led when it was written
}

// readLease reads who holds a job, for a process that leads.
func (jobs *Queue) readLease(ctx context.Context, id string) (rec leaseRecord, revision uint64, err error) {
	if _, err = jobs.journal.Term(); err != nil {
		return rec, 0, err // at once, and not when the servers answer
	}
	if revision, err = jobs.journal.ReadLease(ctx, id, &rec); err != nil {
		return leaseRecord{}, 0, err
	}
	jobs.journal.ObserveTerm(rec.Epoch)
	_, err = jobs.journal.Term()
	return rec, revision, err
}

// writeLease replaces the record of that revision, as WriteLease of the journal does.
func (jobs *Queue) writeLease(ctx context.Context, id string, rec leaseRecord, revision uint64) (uint64, error) {
	var err error
	if rec.Epoch, err = jobs.journal.Term(); err != nil {
		return 0, err
	}
	return jobs.journal.WriteLease(ctx, id, rec, revision)
}

// used adds what a lease has cost, and forgets the first where a job is handed out without end.
func (r *leaseRecord) used(before []scheduler.Use, u scheduler.Use) {
	const most = 16
	r.Uses = append(slices.Clone(before), u)
	r.Uses = r.Uses[max(0, len(r.Uses)-most):]
}

// over tells whether the job of that message has come to its end, and perhaps another of its id has begun.
func (r leaseRecord) over(seq uint64) bool {
	return r.Seq > seq || r.Seq == seq && (r.State == finished || r.State == cancelled)
}

// unreadAtMost is how many leases may be lost on their way to a runner, with the bot that granted them. From then on each is a loss:
// perhaps the runner dies of the answer.
const unreadAtMost = 8

// enough has a lease count as one that its holder heard of, where too many were not.
func (r leaseRecord) enough(q *scheduler.Queue, id string) {
	if r.Unread >= unreadAtMost {
		q.Ack(id)
	}
}

// A Expiry is a lease that ran out because its holder was not heard any more.
type Expiry struct {
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"` // when it got the job
	LastAck time.Time `json:"heard"` // when it was last heard
}

// Enqueue puts job in line for the runners of its labels. While a job of that id waits or is being worked on, it does nothing.
func (jobs *Queue) Enqueue(ctx context.Context, job Job) error {
	err := journal.CheckToken("job id", job.ID)
	for _, label := range job.Labels {
		err = errors.Join(err, journal.CheckToken("label", label))
	}
	if len(job.Labels) == 0 || job.Bundle == "" {
		err = errors.Join(err, errors.New("a job needs a bundle, and labels of runners that may take it"))
	}
	if err == nil {
		err = jobs.known()
	}
	if err == nil && jobs.line.get(job.ID) == nil {
		err = jobs.enqueue(ctx, job)
	}
	if err != nil {
		return fmt.Errorf("enqueue job %s: %w", job.ID, err)
	}
	return nil
}

func (jobs *Queue) enqueue(ctx context.Context, job Job) error {
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	for {
		seq, err := jobs.journal.PutJob(ctx, job.Labels[0], job.ID, data)
		if err == nil {
			job.Queued = time.Now()
			jobs.line.add(&entry{Job: job, seq: seq}, nil)
			return nil
		}
		if !journal.IsConflict(err) {
			return err
		}
		// It is there: the answer to an earlier write was lost, or another process wrote it.
		m, err := jobs.journal.StoredJob(ctx, job.Labels[0], job.ID)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		there, err := jobs.admit(ctx, m)
		if err != nil || there {
			return err
		}
	}
}

// load reads the unfinished jobs, and what jobs have cost lately.
func (jobs *Queue) load(ctx context.Context) error {
	jobs.line.clear()
	err := jobs.journal.EachLease(ctx, time.Now().Add(-usesFor), func(data []byte) {
		var rec leaseRecord
		if json.Unmarshal(data, &rec) != nil {
			return // a record of a different kind; readLease reports one that is damaged
		}
		jobs.line.change(func(q *scheduler.Queue) {
			for _, u := range rec.Uses {
				q.Learn(u)
			}
		})
	})
	if err != nil {
		return fmt.Errorf("read what jobs have cost: %w", err)
	}
	err = jobs.journal.EachJob(ctx, func(m journal.StoredJob) error {
		_, err := jobs.admit(ctx, m)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the jobs: %w", err)
	}
	return nil
}

// usesFor is how far back costs are read: enough for the limits of a day, and to know how long kernels take that change
// once a week.
const usesFor = 7 * 24 * time.Hour

// admit adds a stored job to the line, with what its lease record says. A job that is over is deleted, and admit returns false.
func (jobs *Queue) admit(ctx context.Context, m journal.StoredJob) (bool, error) {
	e, err := parseJob(m)
	if err != nil {
		// Whoever wants it enqueues it again.
		jobs.opt.Log.Error("a message in JOBS is not a job and is removed", "job", m.ID, "error", err)
		return false, jobs.journal.DeleteJob(ctx, m.Seq)
	}
	rec, revision, err := jobs.readLease(ctx, e.ID)
	if err != nil {
		return false, err
	}
	if rec.over(m.Seq) {
		return false, jobs.journal.DeleteJob(ctx, m.Seq)
	}
	e.heard = rec.Since
	jobs.line.add(e, func(q *scheduler.Queue) {
		if revision == 0 || rec.Seq != m.Seq {
			return
		}
		q.Lost(e.ID, len(rec.Losses))
		if rec.Built != nil {
			q.Built(e.ID)
		}
		if rec.State == leased {
			// Its holder has the whole time from now on: it could not be heard before.
			now := time.Now()
			q.Resume(e.ID, rec.Holder, rec.Label, len(rec.Losses), rec.Since, now, now.Add(jobs.opt.LeaseFor))
			rec.enough(q, e.ID)
		}
	})
	return true, nil
}

// parseJob reads a stored job.
func parseJob(m journal.StoredJob) (*entry, error) {
	e := &entry{seq: m.Seq}
	if err := json.Unmarshal(m.Data, &e.Job); err != nil {
		return nil, err
	}
	e.ID, e.Queued = m.ID, m.At
	if len(e.Labels) == 0 {
		return nil, errors.New("it has no labels")
	}
	return e, nil
}

// Cancel takes a job out of line; a runner that holds it learns so at its next Extend. It reports whether there was
// anything left to cancel.
func (jobs *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	if err := journal.CheckToken("job id", id); err != nil {
		return false, fmt.Errorf("cancel job: %w", err)
	}
	for {
		e := jobs.line.get(id)
		if err := jobs.known(); err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		if e == nil {
			return false, nil
		}
		rec, revision, err := jobs.readLease(ctx, id)
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		if rec.Seq == e.seq && rec.State == finished {
			return false, nil
		}
		ended := leaseRecord{Seq: e.seq, Token: rec.Token, State: cancelled, Uses: rec.Uses}
		if use, ok := jobs.line.cost(id); ok {
			ended.used(rec.Uses, use)
		}
		_, err = jobs.writeLease(ctx, id, ended, revision)
		if journal.IsConflict(err) {
			continue // a runner took or finished it meanwhile
		}
		if err == nil {
			err = jobs.journal.DeleteJob(ctx, e.seq)
		}
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		jobs.line.remove(e, false)
		return true, nil
	}
}

// Backlogs lists the labels that have unfinished jobs, by name.
func (jobs *Queue) Backlogs() []Backlog {
	queues := map[string]*Backlog{}
	count := func(label string, since time.Time) *Backlog {
		q := queues[label]
		if q == nil {
			q = &Backlog{Label: label, Oldest: since}
			queues[label] = q
		}
		if since.Before(q.Oldest) {
			q.Oldest = since
		}
		return q
	}
	for _, s := range jobs.line.statuses() {
		if !s.Waits {
			count(cmp.Or(s.Label, s.Labels[0]), s.Queued).Leased++
			continue
		}
		for _, label := range s.Wants {
			count(label, s.Queued).Waiting++
		}
	}
	var all []Backlog
	for _, q := range queues {
		all = append(all, *q)
	}
	slices.SortFunc(all, func(a, b Backlog) int { return cmp.Compare(a.Label, b.Label) })
	return all
}

// Position is where a job stands in line, and false for one that is at a runner, is not there or that no runner of now would
// take. Whoever asks tells it to people: how far it was off is counted.
func (jobs *Queue) Position(id string) (scheduler.Position, bool) {
	jobs.line.mu.Lock()
	defer jobs.line.mu.Unlock()
	now := time.Now()
	return jobs.line.turns.Forecast(id, jobs.line.forecast(now), now)
}

// Positions is where all jobs stand, for whoever looks which of them have moved.
func (jobs *Queue) Positions() map[string]scheduler.Position {
	jobs.line.mu.Lock()
	defer jobs.line.mu.Unlock()
	return jobs.line.forecast(time.Now())
}

// ForecastError is how far off the answers of Position were, since the queue was opened.
func (jobs *Queue) ForecastError() scheduler.ForecastError {
	jobs.line.mu.Lock()
	defer jobs.line.mu.Unlock()
	return jobs.line.turns.ForecastError()
}

// Waited is how long jobs waited for a runner, since the queue was opened or the lead was taken.
func (jobs *Queue) Waited() map[scheduler.Class]scheduler.Histogram {
	jobs.line.mu.Lock()
	defer jobs.line.mu.Unlock()
	return jobs.line.turns.Waited()
}
