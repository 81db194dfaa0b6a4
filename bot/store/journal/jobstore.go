package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The journal stores jobs and the records of their leases as bytes. Package jobs decides about them.

// A StoredJob is an unfinished job.
type StoredJob struct {
	ID   string
	Data []byte
	Seq  uint64    // identifies it: an id may be used again after its job is gone
	At   time.Time // when it was stored
}

func jobSubject(label, id string) string { return "jobs." + label + "." + id }

// PutJob stores a job for the runners of a label. If a job with this id and label exists,
// IsConflict reports true for the error.
func (j *Journal) PutJob(ctx context.Context, label, id string, data []byte) (seq uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	err = untilLed(ctx, func() error {
		ack, err := j.js.Publish(ctx, jobSubject(label, id), data, jetstream.WithExpectLastSequencePerSubject(0))
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	j.noteWrite("JOBS", err)
	return seq, err
}

// StoredJob is the job of that id and label, or ErrNotFound.
func (j *Journal) StoredJob(ctx context.Context, label, id string) (StoredJob, error) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	msg, err := j.last(ctx, j.jobs, jobSubject(label, id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return StoredJob{}, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return StoredJob{}, err
	}
	return StoredJob{ID: id, Data: msg.Data, Seq: msg.Sequence, At: msg.Time}, nil
}

// EachJob calls do for every unfinished job, up to the newest that the leading server has now.
func (j *Journal) EachJob(ctx context.Context, do func(StoredJob) error) error {
	newest := uint64(0)
	if j.external() {
		var err error
		if newest, err = j.lastOf(ctx, j.jobs, "jobs.>"); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(j.opt.answerIn)
	for from, more := uint64(1), true; more || from <= newest && time.Now().Before(deadline); {
		var list []stored
		var err error
		if list, more, err = j.page(ctx, "JOBS", "", from, 512); err != nil {
			return err
		}
		for _, m := range list {
			parts := strings.Split(m.subject, ".") // jobs.<label>.<id>
			if err := do(StoredJob{ID: parts[len(parts)-1], Data: m.data, Seq: m.seq, At: m.at}); err != nil {
				return err
			}
			from = m.seq + 1
		}
		if !more && from <= newest {
			// The server that answered lags, or another bot has finished the newest job meanwhile.
			select {
			case <-time.After(reconnectWait):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// DeleteJob removes a job. A missing job is not an error.
func (j *Journal) DeleteJob(ctx context.Context, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	err := j.jobs.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	// Another bot may have been faster. A single server and a cluster report that with different errors.
	if _, there := j.message(ctx, j.jobs, seq); errors.Is(there, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// ReadLease reads the lease record of a job into rec, and returns its revision; 0 means that there
// is none.
func (j *Journal) ReadLease(ctx context.Context, id string, rec any) (revision uint64, err error) {
	raw, revision, err := getRecord[json.RawMessage](ctx, j.leases, id)
	if err != nil || revision == 0 {
		return 0, err
	}
	if err := json.Unmarshal(raw, rec); err != nil {
		return 0, fmt.Errorf("read %s/%s: %w: %w", j.leases.kv.Bucket(), id, errGarbled, err)
	}
	return revision, nil
}

// WriteLease replaces the lease record of that revision, 0 for none, and returns the new revision.
// If another writer was faster, IsConflict reports true for the error.
func (j *Journal) WriteLease(ctx context.Context, id string, rec any, revision uint64) (uint64, error) {
	return writeRecord(ctx, j.leases, id, rec, revision)
}

// EachLease calls do for every lease record that was written since then. It also visits records of
// other kinds.
func (j *Journal) EachLease(ctx context.Context, since time.Time, do func(data []byte)) error {
	stream, err := j.js.Stream(ctx, "KV_LEASES")
	if err != nil {
		return err
	}
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
		do(msg.Data())
	}
	return nil
}
