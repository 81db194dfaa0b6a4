package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How often a test write checks the journal at most, however often Writable is called.
const (
	writeEvery  = 5 * time.Second
	writeAgain  = time.Second // after a failure
	writeWithin = 2 * time.Second
	probeEvery  = 5 * time.Minute // of DELIVERIES, while no webhook comes
	// failureLasts is how long a failed write counts if nobody has tried again: longer than the longest pause of the bot's work.
	failureLasts = 3 * time.Minute
)

const (
	// writeKey is the key of an empty record. Delivery ids have no dot, so this cannot be one.
	writeKey = "write.test"
	// probeSubject is the subject of test messages in DELIVERIES, which are deleted at once. GitHub has no such event.
	probeSubject = "deliveries.write.test"
	// probeBytes is the size of a large webhook. A message of a few bytes still fits into the last block of a file on a full disk.
	probeBytes = 64 << 10
	// leastFree is the free space below which the embedded server is expected to fail.
	leastFree = 4 << 20
)

// written is what is known about writes.
type written struct {
	mu     sync.Mutex
	at     time.Time // of the last test
	err    error     // of that
	stored time.Time // when DELIVERIES last took a message
	failed map[string]failure

	critical string    // what the server says about a write error after which it stores nothing in that stream
	room     time.Time // since when its disk has space nevertheless
}

// A failure describes the writes to one stream since the last one that succeeded.
type failure struct {
	err      error
	last     time.Time
	withRoom time.Time // the first of those at the end of the row that failed although the disk had space
}

// noteWrite remembers whether the server stores what the bot writes. A refusal because of a newer message is no failure.
func (j *Journal) noteWrite(stream string, err error) {
	if j.external() {
		return // its servers have their own supervisor
	}
	var refused *jetstream.APIError
	answered := errors.As(err, &refused)
	w := &j.written
	switch {
	case err == nil || IsConflict(err):
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.failed, stream)
		if stream == "DELIVERIES" {
			w.stored = time.Now()
		}
	case answered || errors.Is(err, context.DeadlineExceeded): // a server that could not write does not answer
		room := answered && j.hasRoom()
		w.mu.Lock()
		defer w.mu.Unlock()
		f := w.failed[stream]
		f.err, f.last = err, time.Now()
		if !room {
			f.withRoom = time.Time{}
		} else if f.withRoom.IsZero() {
			f.withRoom = f.last
		}
		if w.failed == nil {
			w.failed = map[string]failure{}
		}
		w.failed[stream] = f
	}
}

// noteCritical remembers that the server has given a stream up. It answers no later write to it.
func (j *Journal) noteCritical(line string) {
	j.written.mu.Lock()
	defer j.written.mu.Unlock()
	j.written.critical = line
}

// hasRoom reports whether a restarted embedded server would accept writes.
func (j *Journal) hasRoom() bool {
	const enough = 2 * leastFree
	free, size, err := diskOf(j.opt.Dir)
	if err != nil {
		return false
	}
	if j.opt.MaxStore == 0 {
		return free > size/spare+enough
	}
	is, err := j.srv.Jsz(nil)
	return err == nil && free > enough && int64(is.Store)+enough < j.opt.MaxStore
}

func diskOf(dir string) (free, size int64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, 0, err
	}
	block := int64(disk.Bsize)
	return int64(disk.Bavail) * block, int64(disk.Blocks) * block, nil
}

// Stuck returns an error if the embedded server refuses writes although its disk has space. After a write has failed, the
// server refuses all later ones of that stream, and it keeps the storage limit that it had at its start. Only a restart helps.
func (j *Journal) Stuck() error {
	w := &j.written
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.critical != "" {
		if !j.hasRoom() {
			w.room = time.Time{}
		} else if now := time.Now(); w.room.IsZero() {
			w.room = now
		} else if now.Sub(w.room) >= j.opt.stuckIn {
			return fmt.Errorf("the embedded NATS server does not write any more although its disk has space again: %s (a restart of the bot repairs it)", w.critical)
		}
	}
	for stream, f := range w.failed {
		if !f.withRoom.IsZero() && f.last.Sub(f.withRoom) >= j.opt.stuckIn {
			return fmt.Errorf("the embedded NATS server stores nothing in %s although its disk has space again: %w (a restart of the bot repairs it)", stream, f.err)
		}
	}
	return nil
}

// Writable returns nil if the journal accepts what webhooks bring. A full journal still answers reads.
func (j *Journal) Writable(ctx context.Context) error {
	w := &j.written
	w.mu.Lock()
	if w.critical != "" {
		defer w.mu.Unlock()
		return errors.New(w.critical)
	}
	since := time.Since(w.at)
	if since < writeAgain || since < writeEvery && w.err == nil && len(w.failed) == 0 {
		defer w.mu.Unlock()
		return w.err
	}
	w.at = time.Now() // others take the last answer meanwhile
	probe := !j.external() && (len(w.failed) > 0 || w.err != nil || time.Since(w.stored) > probeEvery)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	err := j.tryWrites(ctx, probe)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	return err
}

func (j *Journal) tryWrites(ctx context.Context, probe bool) error {
	if j.external() {
		return putRecord(ctx, j.state, writeKey, struct{}{}) // it waits for a new leader
	}
	if free, _, err := diskOf(j.opt.Dir); err != nil || free < leastFree {
		return errors.Join(err, fmt.Errorf("the disk of the journal has %d bytes left", free))
	}
	_, err := j.state.kv.Put(ctx, writeKey, []byte("{}"))
	j.noteWrite("KV_DELIVERY_STATE", err)
	if err == nil && probe {
		err = j.probeDeliveries(ctx)
	}
	if err != nil {
		return err
	}
	w := &j.written
	w.mu.Lock()
	defer w.mu.Unlock()
	for stream, f := range w.failed {
		if time.Since(f.last) > failureLasts {
			delete(w.failed, stream)
			continue
		}
		return fmt.Errorf("the last write to %s failed: %w", stream, f.err)
	}
	return nil
}

// probeDeliveries stores a message as large as a webhook where webhooks are stored, and deletes it.
func (j *Journal) probeDeliveries(ctx context.Context) error {
	ack, err := j.js.Publish(ctx, probeSubject, make([]byte, probeBytes))
	j.noteWrite("DELIVERIES", err)
	if err != nil {
		return fmt.Errorf("store a test message in DELIVERIES: %w", err)
	}
	if err := j.deliveries.DeleteMsg(ctx, ack.Sequence); err != nil {
		return fmt.Errorf("delete a test message of DELIVERIES: %w", err)
	}
	return nil
}
