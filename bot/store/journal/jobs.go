package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// A Job is work for a runner: what the scheduler orders by, and the bundle to work on.
type Job struct {
	scheduler.Job
	Bundle string `json:"bundle"` // name in Bundles, which is its SHA-256 in hex
}

// A Queue says how much work there is for the runners of one label. A job of several labels waits in each.
type Queue struct {
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

// leaseOf reads who holds a job, for a process that leads.
func (j *Journal) leaseOf(ctx context.Context, id string) (rec leaseRecord, revision uint64, err error) {
	if _, err = j.fence(); err != nil {
		return rec, 0, err // at once, and not when the servers answer
	}
	if rec, revision, err = getRecord[leaseRecord](ctx, j.leases, id); err != nil {
		return rec, 0, err
	}
	j.observeTerm(rec.Epoch)
	_, err = j.fence()
	return rec, revision, err
}

// writeLease replaces the record of that revision, as writeRecord does.
func (j *Journal) writeLease(ctx context.Context, id string, rec leaseRecord, revision uint64) (uint64, error) {
	var err error
	if rec.Epoch, err = j.fence(); err != nil {
		return 0, err
	}
	return writeRecord(ctx, j.leases, id, rec, revision)
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
func (j *Journal) Enqueue(ctx context.Context, job Job) error {
	err := checkToken("job id", job.ID)
	for _, label := range job.Labels {
		err = errors.Join(err, checkToken("label", label))
	}
	if len(job.Labels) == 0 || job.Bundle == "" {
		err = errors.Join(err, errors.New("a job needs a bundle, and labels of runners that may take it"))
	}
	if err == nil {
		err = j.knowsJobs()
	}
	if err == nil && j.queue.get(job.ID) == nil {
		err = j.enqueue(ctx, job)
	}
	if err != nil {
		return fmt.Errorf("enqueue job %s: %w", job.ID, err)
	}
	return nil
}

func (j *Journal) enqueue(ctx context.Context, job Job) error {
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	subject := "jobs." + job.Labels[0] + "." + job.ID
	for {
		var ack *jetstream.PubAck
		err := untilLed(ctx, func() (err error) {
			ack, err = j.js.Publish(ctx, subject, data, jetstream.WithExpectLastSequencePerSubject(0))
			return err
		})
		if err == nil {
			job.Queued = time.Now()
			j.queue.add(&entry{Job: job, seq: ack.Sequence}, nil)
			return nil
		}
		if !isConflict(err) {
			return err
		}
		// It is there: the answer to an earlier write was lost, or another process wrote it.
		msg, err := j.last(ctx, j.jobs, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		there, err := j.admit(ctx, stored{subject: msg.Subject, data: msg.Data, seq: msg.Sequence, at: msg.Time})
		if err != nil || there {
			return err
		}
	}
}

// loadJobs reads what is unfinished, up to what the server that leads has now.
func (j *Journal) loadJobs(ctx context.Context) error {
	j.queue.clear()
	if err := j.loadUses(ctx); err != nil {
		return fmt.Errorf("read what jobs have cost: %w", err)
	}
	newest := uint64(0)
	if j.external() {
		var err error
		if newest, err = j.lastOf(ctx, j.jobs, "jobs.>"); err != nil {
			return fmt.Errorf("read the jobs: %w", err)
		}
	}
	deadline := time.Now().Add(j.opt.answerIn)
	for from, more := uint64(1), true; more || from <= newest && time.Now().Before(deadline); {
		var list []stored
		var err error
		if list, more, err = j.page(ctx, "JOBS", "", from, 512); err != nil {
			return fmt.Errorf("read the jobs: %w", err)
		}
		for _, m := range list {
			if _, err := j.admit(ctx, m); err != nil {
				return fmt.Errorf("read the jobs: %w", err)
			}
			from = m.seq + 1
		}
		if !more && from <= newest {
			// It was asked of a server that is behind, or another bot has finished the newest meanwhile.
			select {
			case <-time.After(reconnectWait):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// admit takes a stored job into the queue, as the record says. One that is over is tidied up, and false.
func (j *Journal) admit(ctx context.Context, m stored) (bool, error) {
	e, err := parseJob(m)
	if err != nil {
		// Whoever wants it enqueues it again.
		j.opt.Log.Error("a message in JOBS is not a job and is removed", "subject", m.subject, "error", err)
		return false, j.deleteJob(ctx, m.seq)
	}
	rec, revision, err := j.leaseOf(ctx, e.ID)
	if err != nil {
		return false, err
	}
	if rec.over(m.seq) {
		return false, j.deleteJob(ctx, m.seq)
	}
	e.heard = rec.Since
	j.queue.add(e, func(q *scheduler.Queue) {
		if revision == 0 || rec.Seq != m.seq {
			return
		}
		q.Lost(e.ID, len(rec.Losses))
		if rec.Built != nil {
			q.Built(e.ID)
		}
		if rec.State == leased {
			// Its holder has the whole time from now on: it could not be heard before.
			now := time.Now()
			q.Resume(e.ID, rec.Holder, rec.Label, len(rec.Losses), rec.Since, now, now.Add(j.opt.LeaseFor))
			rec.enough(q, e.ID)
		}
	})
	return true, nil
}

// parseJob reads a stored job.
func parseJob(m stored) (*entry, error) {
	parts := strings.Split(m.subject, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("subject %q is not jobs.<label>.<id>", m.subject)
	}
	e := &entry{seq: m.seq}
	if err := json.Unmarshal(m.data, &e.Job); err != nil {
		return nil, err
	}
	e.ID, e.Queued = parts[2], m.at
	if len(e.Labels) == 0 {
		return nil, errors.New("it has no labels")
	}
	return e, nil
}

func (j *Journal) deleteJob(ctx context.Context, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	err := j.jobs.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	// Another bot may have been faster, of which servers alone and in a cluster speak in different words.
	if _, there := j.message(ctx, j.jobs, seq); errors.Is(there, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// Cancel takes a job out of line; a runner that holds it learns so at its next Extend. It reports whether there was
// anything left to cancel.
func (j *Journal) Cancel(ctx context.Context, id string) (bool, error) {
	if err := checkToken("job id", id); err != nil {
		return false, fmt.Errorf("cancel job: %w", err)
	}
	for {
		e := j.queue.get(id)
		if err := j.knowsJobs(); err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		if e == nil {
			return false, nil
		}
		rec, revision, err := j.leaseOf(ctx, id)
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		if rec.Seq == e.seq && rec.State == finished {
			return false, nil
		}
		ended := leaseRecord{Seq: e.seq, Token: rec.Token, State: cancelled, Uses: rec.Uses}
		if use, ok := j.queue.cost(id); ok {
			ended.used(rec.Uses, use)
		}
		_, err = j.writeLease(ctx, id, ended, revision)
		if isConflict(err) {
			continue // a runner took or finished it meanwhile
		}
		if err == nil {
			err = j.deleteJob(ctx, e.seq)
		}
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		j.queue.remove(e, false)
		return true, nil
	}
}

// Queues lists the labels that have unfinished jobs, by name.
func (j *Journal) Queues() []Queue {
	queues := map[string]*Queue{}
	count := func(label string, since time.Time) *Queue {
		q := queues[label]
		if q == nil {
			q = &Queue{Label: label, Oldest: since}
			queues[label] = q
		}
		if since.Before(q.Oldest) {
			q.Oldest = since
		}
		return q
	}
	for _, s := range j.queue.statuses() {
		if !s.Waits {
			count(cmp.Or(s.Label, s.Labels[0]), s.Queued).Leased++
			continue
		}
		for _, label := range s.Wants {
			count(label, s.Queued).Waiting++
		}
	}
	var all []Queue
	for _, q := range queues {
		all = append(all, *q)
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Compare(a.Label, b.Label) })
	return all
}

// Position is where a job stands in line, and false for one that is at a runner, is not there or that no runner of now would
// take. Whoever asks tells it to people: how far it was off is counted.
func (j *Journal) Position(id string) (scheduler.Position, bool) {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	now := time.Now()
	return j.queue.turns.Forecast(id, j.queue.forecast(now), now)
}

// Positions is where all jobs stand, for whoever looks which of them have moved.
func (j *Journal) Positions() map[string]scheduler.Position {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return j.queue.forecast(time.Now())
}

// ForecastError is how far what Place said was off, since the journal was opened.
func (j *Journal) ForecastError() scheduler.ForecastError {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return j.queue.turns.ForecastError()
}

// Waited is how long jobs waited for a runner, since the journal was opened or the lead was taken.
func (j *Journal) Waited() map[scheduler.Class]scheduler.Histogram {
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	return j.queue.turns.Waited()
}

// usesFor is how far back what jobs have cost is read at a start: enough for the limits of a day, and to know how long
// kernels take that change once a week.
const usesFor = 7 * 24 * time.Hour

// loadUses reads what jobs have cost lately.
func (j *Journal) loadUses(ctx context.Context) error {
	stream, err := j.js.Stream(ctx, "KV_LEASES")
	if err != nil {
		return err
	}
	since := time.Now().Add(-usesFor)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, InactiveThreshold: missedAfter,
	})
	if err != nil {
		return err
	}
	defer func() { _ = j.nc.Publish("$JS.API.CONSUMER.DELETE.KV_LEASES."+consumer.CachedInfo().Name, nil) }() // as replayAll does
	left := consumer.CachedInfo().NumPending
	if left == 0 {
		return nil
	}
	iter, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer iter.Stop()
	for ; left > 0; left-- {
		msg, err := iter.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		var rec leaseRecord
		if json.Unmarshal(msg.Data(), &rec) != nil {
			continue // of something else, or told by whoever asks for it
		}
		j.queue.change(func(q *scheduler.Queue) {
			for _, u := range rec.Uses {
				q.Learn(u)
			}
		})
	}
	return nil
}
