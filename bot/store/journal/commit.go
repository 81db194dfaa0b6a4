package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// perByte lets a large message take longer: 25 MB have two seconds and a half more.
	perByte = 100 * time.Nanosecond
	// goOn is how long a group may delay the next one. A good disk answers within a hundredth of
	// it.
	goOn = 250 * time.Millisecond

	// A batch costs four fsyncs and a staging folder made and removed, whether it holds 16 messages or 256. Below this size
	// one fsync a message is cheaper.
	batchFrom = 16
	// The bounds keep a group's latency low; the server itself takes 1,000 messages.
	groupMax   = 256
	groupBytes = 8 << 20
)

// A committer writes messages to disk in groups: those that arrived while the last group was
// written. A lost answer costs its own caller a second attempt, and delays the others by at most
// goOn.
type committer struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	patient time.Duration // how long the server may take to answer; then a message is sent once more
	queue   chan *write
	closing chan struct{}
	once    sync.Once
	ended   chan struct{}
}

type write struct {
	msg  *nats.Msg
	done chan error // buffered: a caller that gave up must not stop the others
}

func newCommitter(nc *nats.Conn, js jetstream.JetStream, patient time.Duration) *committer {
	c := &committer{nc: nc, js: js, patient: patient, queue: make(chan *write, groupMax), closing: make(chan struct{}), ended: make(chan struct{})}
	go c.loop()
	return c
}

// put returns when msg is on disk. After a cancelled ctx the message may be stored or not. A conflict may be with the
// message itself, whose first answer was lost.
func (c *committer) put(ctx context.Context, msg *nats.Msg) error {
	w := &write{msg: msg, done: make(chan error, 1)}
	select {
	case c.queue <- w:
	case <-c.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.done:
		return err
	case <-c.ended:
		// The loop may have answered just before it ended.
		select {
		case err := <-w.done:
			return err
		default:
			return errClosed
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *committer) close() {
	c.once.Do(func() { close(c.closing) })
	<-c.ended
}

func (c *committer) loop() {
	defer close(c.ended)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		var first *write
		select {
		case first = <-c.queue:
		case <-c.closing:
			select {
			case first = <-c.queue: // it arrived before the end, and gets an answer
			default:
				return
			}
		}
		group, written := c.gather(first), make(chan struct{})
		all.Go(func() {
			defer close(written)
			c.write(group)
		})
		select {
		case <-written:
		case <-time.After(goOn):
		}
	}
}

// gather takes the messages that are waiting already, and does not wait for more.
func (c *committer) gather(first *write) []*write {
	group, bytes := []*write{first}, len(first.msg.Data)
	for len(group) < groupMax && bytes < groupBytes {
		select {
		case w := <-c.queue:
			group = append(group, w)
			bytes += len(w.msg.Data)
		default:
			return group
		}
	}
	return group
}

// write returns when every message of the group has an answer. Each caller gets its answer at once.
func (c *committer) write(group []*write) {
	if len(group) >= batchFrom && c.writeBatch(group) == nil {
		for _, w := range group {
			w.done <- nil
		}
		return
	}
	// A refused message fails its whole batch; sent one by one, each gets its own answer. If only
	// the answer of the batch was lost, its messages are refused here as duplicates.
	var all sync.WaitGroup
	for _, w := range group {
		all.Go(func() { w.done <- c.writeOne(w.msg) })
	}
	all.Wait()
}

// writeOne sends the message again if no answer comes. If it was stored, the server refuses the
// copy, because every message names the sequence that it expects on its subject.
func (c *committer) writeOne(msg *nats.Msg) (err error) {
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), c.patient+perByte*time.Duration(len(msg.Data)))
		err = untilLed(ctx, func() error { _, err := c.js.PublishMsg(ctx, msg); return err })
		late := ctx.Err() != nil
		cancel()
		if !late {
			return err
		}
	}
	return fmt.Errorf("the journal's server does not answer: %w", err)
}

// writeBatch stores all of group or nothing.
func (c *committer) writeBatch(group []*write) error {
	id := nuid.Next()
	for i, w := range group {
		m := nats.NewMsg(w.msg.Subject)
		m.Data = w.msg.Data
		maps.Copy(m.Header, w.msg.Header)
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		if i < len(group)-1 {
			if err := c.nc.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		m.Header.Set("Nats-Batch-Commit", "1")
		answer, err := c.nc.RequestMsg(m, c.patient)
		if err != nil {
			return err
		}
		var ack struct {
			Error *jetstream.APIError `json:"error"`
			Count int                 `json:"count"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil {
			return fmt.Errorf("commit of a batch: %w", err)
		}
		if ack.Error != nil {
			return ack.Error
		}
		if ack.Count != len(group) {
			return fmt.Errorf("commit of a batch: %d of %d messages stored", ack.Count, len(group))
		}
	}
	return nil
}
