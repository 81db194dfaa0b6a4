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
)

// A Job is work for a runner.
type Job struct {
	ID      string
	Payload []byte
}

// A Queue says how much work waits for the runners of one label.
type Queue struct {
	Label   string
	Waiting int       // nobody works on them
	Leased  int       // handed to a runner and neither finished nor expired
	Oldest  time.Time // when the oldest unfinished job was enqueued
}

type leaseState string

const (
	leased    leaseState = "leased"
	released  leaseState = "released"
	finished  leaseState = "finished"
	cancelled leaseState = "cancelled"
)

// leaseRecord decides who holds a job. Every change is conditional on the revision that the writer has seen. JetStream's own
// acknowledgements are not: it takes one from whoever once held the message.
type leaseRecord struct {
	Seq   uint64     `json:"seq"` // which message; an id may be enqueued again after its job is gone
	Token uint64     `json:"token"`
	State leaseState `json:"state"`

	// While it is leased: who may Attach to it, and where JetStream wants to hear about it.
	Holder string `json:"holder,omitempty"`
	Reply  string `json:"reply,omitempty"`
}

// Enqueue puts job in line for the runners of label. While a job of that id waits or is being worked on, it does nothing.
func (j *Journal) Enqueue(ctx context.Context, label string, job Job) error {
	if err := errors.Join(checkToken("label", label), checkToken("job id", job.ID)); err != nil {
		return fmt.Errorf("enqueue job: %w", err)
	}
	_, err := j.js.Publish(ctx, "jobs."+label+"."+job.ID, job.Payload, jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil && !isConflict(err) {
		return fmt.Errorf("enqueue job %s for %s: %w", job.ID, label, err)
	}
	return nil
}

// Cancel takes a job out of line; a runner that holds it learns so at its next Extend, or at once in Hold. It reports
// whether there was anything left to cancel.
func (j *Journal) Cancel(ctx context.Context, id string) (bool, error) {
	if err := checkToken("job id", id); err != nil {
		return false, fmt.Errorf("cancel job: %w", err)
	}
	for {
		msg, err := j.jobs.GetLastMsgForSubject(ctx, "jobs.*."+id)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		rec, revision, err := getRecord[leaseRecord](ctx, j.leases, id)
		if err != nil {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		if rec.Seq == msg.Sequence && rec.State == finished {
			return false, nil
		}
		rec = leaseRecord{Seq: msg.Sequence, Token: rec.Token, State: cancelled}
		_, err = j.writeLease(ctx, id, rec, revision)
		if isConflict(err) {
			continue // a runner took or finished it meanwhile
		}
		if err == nil {
			err = j.jobs.DeleteMsg(ctx, msg.Sequence)
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, fmt.Errorf("cancel job %s: %w", id, err)
		}
		return true, nil
	}
}

// writeLease replaces the record of that revision, 0 for none.
func (j *Journal) writeLease(ctx context.Context, id string, rec leaseRecord, revision uint64) (uint64, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return j.leases.Create(ctx, id, data)
	}
	return j.leases.Update(ctx, id, data, revision)
}

// Queues lists the labels that have unfinished jobs, by name.
func (j *Journal) Queues(ctx context.Context) ([]Queue, error) {
	info, err := j.jobs.Info(ctx, jetstream.WithSubjectFilter("jobs.>"))
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	total := make(map[string]int)
	for subject, n := range info.State.Subjects {
		label, _, _ := strings.Cut(strings.TrimPrefix(subject, "jobs."), ".")
		total[label] += int(n)
	}
	var queues []Queue
	for label, n := range total {
		q, err := j.queue(ctx, label, n)
		if err != nil {
			return nil, fmt.Errorf("read queue %s: %w", label, err)
		}
		queues = append(queues, q)
	}
	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Compare(a.Label, b.Label) })
	return queues, nil
}

func (j *Journal) queue(ctx context.Context, label string, total int) (Queue, error) {
	q := Queue{Label: label, Waiting: total}
	consumer, err := j.jobs.Consumer(ctx, consumerName(label))
	if err == nil {
		q.Leased = min(consumer.CachedInfo().NumAckPending, total)
		q.Waiting -= q.Leased
	} else if !errors.Is(err, jetstream.ErrConsumerNotFound) { // no runner ever asked
		return q, err
	}
	first, err := j.jobs.GetMsg(ctx, 0, jetstream.WithGetMsgSubject("jobs."+label+".*"))
	if err == nil {
		q.Oldest = first.Time
	} else if !errors.Is(err, jetstream.ErrMsgNotFound) { // the last one was finished just now
		return q, err
	}
	return q, nil
}
