package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kernelgate/kernelgate/bot/compat"
)

const (
	headerKind    = "Kernelgate-Kind"
	headerAt      = "Kernelgate-At"      // when it happened by the writer's clock
	headerVersion = "Kernelgate-Version" // of the writer
)

// followAhead is how many events Follow reads at once.
const followAhead = 256

// An Event is a fact about a run. Seq orders the facts about all runs.
type Event struct {
	Seq  uint64
	Run  string
	Kind string
	At   time.Time
	Data json.RawMessage
	// Writer says which version wrote it. Pass it to the function that decodes Data.
	Writer compat.Writer
}

// Append writes a fact about run as JSON and returns its sequence. expect is the sequence of the run's last event that the
// writer knows, 0 for none; when the run has moved on the server refuses with ErrConflict, and the writer must read again
// before it decides anything. A write whose answer was lost, and is repeated, is refused the same way.
func (j *Journal) Append(ctx context.Context, run string, expect uint64, kind string, payload any) (uint64, error) {
	return j.AppendAt(ctx, j.opt.Now(), run, expect, kind, payload)
}

// AppendAt is Append for a writer that applies the event itself: at is stored with the event, so that the writer and every
// later reader apply it with the same time, whatever the server's clock says.
func (j *Journal) AppendAt(ctx context.Context, at time.Time, run string, expect uint64, kind string, payload any) (uint64, error) {
	if err := errors.Join(CheckToken("run", run), CheckToken("kind", kind)); err != nil {
		return 0, fmt.Errorf("append event: %w", err)
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return 0, fmt.Errorf("append %s to run %s: %w", kind, run, err)
	}
	msg := nats.NewMsg("events." + run)
	msg.Data = data
	msg.Header.Set(headerKind, kind)
	msg.Header.Set(headerAt, at.UTC().Format(time.RFC3339Nano))
	if j.opt.Version != "" {
		msg.Header.Set(headerVersion, j.opt.Version)
	}
	epoch, err := j.fence()
	if err != nil {
		return 0, fmt.Errorf("append %s to run %s: %w", kind, run, err)
	}
	if epoch > 0 {
		msg.Header.Set(headerEpoch, strconv.FormatUint(epoch, 10))
	}
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	seq, err := j.publish(ctx, msg, run, expect)
	if errors.Is(err, ErrConflict) {
		return 0, fmt.Errorf("append %s to run %s after event %d: %w", kind, run, expect, ErrConflict)
	}
	if err != nil {
		return 0, fmt.Errorf("append %s to run %s: %w", kind, run, err)
	}
	j.appended.notify()
	return seq, nil
}

// publish links an event to the run's last one and writes it.
func (j *Journal) publish(ctx context.Context, msg *nats.Msg, run string, expect uint64) (uint64, error) {
	before, err := j.before(ctx, run, expect)
	if err != nil {
		return 0, err
	}
	hash := link(msg, before)
	var ack *jetstream.PubAck
	try := func() (err error) {
		ack, err = j.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expect))
		return err
	}
	err = untilLed(ctx, try)
	if lost, ok := j.lostBehind(err, expect); ok {
		expect = lost
		err = untilLed(ctx, try)
	}
	j.noteWrite("EVENTS", err)
	switch {
	case IsConflict(err):
		j.tails.Remove(run)
		return 0, ErrConflict
	case err != nil:
		j.tails.Remove(run)
		return 0, err
	}
	j.tails.Add(run, tail{ack.Sequence, hash})
	j.wroteEvent(ack.Sequence, hash)
	return ack.Sequence, nil
}

// lostBehind returns the sequence that the server expects in place of expect, if it cannot read the run's last event, and the
// loss was accepted: readers leave that event out. The server expects it, or none.
func (j *Journal) lostBehind(err error, expect uint64) (uint64, bool) {
	var api *jetstream.APIError
	if !IsConflict(err) || !errors.As(err, &api) || len(j.accepted.Load().seqs) == 0 {
		return 0, false
	}
	var last uint64
	if _, err := fmt.Sscanf(api.Description, "wrong last sequence: %d", &last); err != nil {
		return 0, false
	}
	return last, last == 0 || last > expect && j.accepted.Load().seqs[last]
}

// Last returns the run's newest event, or ErrNotFound.
func (j *Journal) Last(ctx context.Context, run string) (Event, error) {
	if err := CheckToken("run", run); err != nil {
		return Event{}, err
	}
	msg, err := j.last(ctx, j.events, "events."+run)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Event{}, fmt.Errorf("run %s: %w", run, ErrNotFound)
	}
	if err != nil {
		return Event{}, fmt.Errorf("last event of run %s: %w", run, err)
	}
	j.ObserveTerm(termOf(msg.Header))
	return Event{Seq: msg.Sequence, Run: run, Kind: msg.Header.Get(headerKind), At: timeOf(msg.Header, msg.Time), Data: msg.Data, Writer: j.writerOf(msg.Header)}, nil
}

func (j *Journal) writerOf(h nats.Header) compat.Writer {
	return compat.Writer{Version: h.Get(headerVersion), Reader: j.opt.Version}
}

// timeOf returns when an event happened: the writer's time or, for events without one, the time at
// which the server stored it.
func timeOf(h nats.Header, stored time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, h.Get(headerAt)); err == nil {
		return at
	}
	return stored
}

// Replay hands every event after the sequence `after` to apply, up to the newest, and returns the sequence of the last one
// applied. 0 replays everything.
func (j *Journal) Replay(ctx context.Context, after uint64, apply func(Event) error) (uint64, error) {
	return j.replay(ctx, "", after, apply)
}

// ReplayRun is Replay for one run from its beginning.
func (j *Journal) ReplayRun(ctx context.Context, run string, apply func(Event) error) (uint64, error) {
	return j.ReplayRunAfter(ctx, run, 0, apply)
}

// ReplayRunAfter is Replay for one run.
func (j *Journal) ReplayRunAfter(ctx context.Context, run string, after uint64, apply func(Event) error) (uint64, error) {
	if err := CheckToken("run", run); err != nil {
		return 0, err
	}
	return j.replay(ctx, "events."+run, after, apply)
}

// missedAfter is when the server deletes a consumer that nobody reads.
const missedAfter = time.Minute

// replay reads up to the newest event at its start. The server of a consumer may lag behind the
// leading one; then replay asks again.
func (j *Journal) replay(ctx context.Context, subject string, after uint64, apply func(Event) error) (uint64, error) {
	newest, err := j.newest(ctx, subject)
	if err != nil {
		return after, fmt.Errorf("read events after %d: %w", after, err)
	}
	deadline := time.Now().Add(j.opt.answerIn)
	for {
		was := after
		if subject == "" {
			after, err = j.replayAll(ctx, after, apply)
		} else {
			after, err = j.replayPages(ctx, subject, after, apply)
		}
		lags := errors.Is(err, errGap) && time.Now().Before(deadline)
		if err != nil && !lags || err == nil && after >= newest {
			return after, err
		}
		if after > was {
			deadline = time.Now().Add(j.opt.answerIn)
		}
		if time.Now().After(deadline) {
			return after, fmt.Errorf("read events after %d: there is an event %d, and the server does not give it", after, newest)
		}
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
			return after, ctx.Err()
		}
	}
}

// Newest returns the sequence of the last event. It returns 0 if there is none, and for an embedded
// server, whose events arrive at once.
func (j *Journal) Newest(ctx context.Context) (seq uint64, err error) {
	err = j.again(ctx, func(ctx context.Context) error { seq, err = j.newest(ctx, ""); return err })
	return seq, err
}

// LastSeq returns the sequence of the last event, 0 if there is none.
func (j *Journal) LastSeq(ctx context.Context) (uint64, error) {
	return j.lastOf(ctx, j.events, "events.>")
}

// newest returns the sequence of the last event, of all subjects or of one; 0 means none. The
// embedded server never lags.
func (j *Journal) newest(ctx context.Context, subject string) (uint64, error) {
	if !j.external() {
		return 0, nil
	}
	return j.lastOf(ctx, j.events, cmp.Or(subject, "events.>"))
}

// replayPages reads one run, from any available server.
func (j *Journal) replayPages(ctx context.Context, subject string, after uint64, apply func(Event) error) (uint64, error) {
	c := j.newChain(0)
	run := strings.TrimPrefix(subject, "events.")
	c.whole, c.tails = after == 0, map[string]string{}
	if t, known := j.tails.Get(run); known && after > 0 && t.seq == after {
		c.whole, c.tails[run] = true, t.hash
	}
	for {
		list, more, err := j.page(ctx, "EVENTS", subject, after+1, followAhead)
		if err != nil {
			return after, fmt.Errorf("read events after %d: %w", after, err)
		}
		if after, err = j.applyAll(ctx, c, list, after, apply); err != nil || !more {
			if err == nil && c.last != "" {
				j.tails.Add(run, tail{after, c.last})
			}
			return after, err
		}
	}
}

// replayAll reads by a consumer, which is cheaper than pages for many events. It deletes the
// consumer at once, because the server allows 1,000 and would keep it for minutes.
func (j *Journal) replayAll(ctx context.Context, after uint64, apply func(Event) error) (uint64, error) {
	o := jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1, InactiveThreshold: missedAfter,
	}
	consumer, err := j.events.OrderedConsumer(ctx, o)
	if err != nil {
		return after, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer func() {
		// Do not wait for the answer: if this message is lost, the server deletes the consumer
		// later.
		_ = j.nc.Publish("$JS.API.CONSUMER.DELETE.EVENTS."+consumer.CachedInfo().Name, nil)
	}()
	if consumer.CachedInfo().NumPending == 0 {
		return after, nil
	}
	iter, err := consumer.Messages()
	if err != nil {
		return after, fmt.Errorf("read events after %d: %w", after, err)
	}
	defer iter.Stop()
	c := j.newChain(after + 1)
	for {
		msg, err := j.nextEvent(ctx, iter)
		if errors.Is(err, nats.ErrTimeout) {
			return j.replayRest(ctx, c, after, apply)
		}
		if err != nil {
			return after, fmt.Errorf("read events after %d: %w", after, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return after, fmt.Errorf("read events after %d: %w", after, err)
		}
		m := stored{subject: msg.Subject(), header: msg.Headers(), data: msg.Data(), seq: meta.Sequence.Stream, at: meta.Timestamp}
		if after, err = j.applyAll(ctx, c, []stored{m}, after, apply); err != nil || meta.NumPending == 0 {
			return after, err
		}
	}
}

// nextEvent returns nats.ErrTimeout if the server gives no message for a long time.
func (j *Journal) nextEvent(ctx context.Context, iter jetstream.MessagesContext) (jetstream.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	msg, err := iter.Next(jetstream.NextContext(waiting))
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nats.ErrTimeout
	}
	return msg, err
}

// replayRest continues a replay whose consumer gives nothing more: it waits in vain for an event that the server cannot read.
func (j *Journal) replayRest(ctx context.Context, c *chain, after uint64, apply func(Event) error) (uint64, error) {
	list, _, err := j.page(ctx, "EVENTS", "", after+1, followAhead)
	if err != nil {
		return after, fmt.Errorf("read events after %d: %w", after, err)
	}
	if len(list) > 0 {
		return j.applyAll(ctx, c, list, after, apply) // replay reads on
	}
	info, err := j.events.Info(ctx)
	if err != nil {
		return after, fmt.Errorf("read events after %d: %w", after, err)
	}
	return after, damage(c.until(info.State.LastSeq))
}

func (j *Journal) newChain(next uint64) *chain {
	return &chain{accepted: j.accepted.Load().seqs, next: next}
}

// applyAll checks messages, applies them as events, and returns the sequence of the last one that was applied, or after.
func (j *Journal) applyAll(ctx context.Context, c *chain, list []stored, after uint64, apply func(Event) error) (uint64, error) {
	for _, m := range list {
		if found := c.check(m); len(found) > 0 {
			return after, j.confirm(ctx, found)
		}
		if c.accepted[m.seq] && !m.intact() {
			after = m.seq
			continue
		}
		j.ObserveTerm(termOf(m.header))
		e := Event{Seq: m.seq, At: timeOf(m.header, m.at), Data: m.data, Run: strings.TrimPrefix(m.subject, "events."), Kind: m.header.Get(headerKind), Writer: j.writerOf(m.header)}
		if err := apply(e); err != nil {
			return after, fmt.Errorf("apply event %d (%s of run %s): %w", e.Seq, e.Kind, e.Run, err)
		}
		after = m.seq
	}
	return after, nil
}

// Follow replays the events after `after` and continues with new ones as they are written, until ctx
// ends (nil) or apply fails. It waits while no server answers.
func (j *Journal) Follow(ctx context.Context, after uint64, apply func(Event) error) error {
	c := j.newChain(after + 1)
	for {
		news := j.appended.wait()
		list, more, err := j.page(ctx, "EVENTS", "", after+1, followAhead)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			j.opt.Log.Warn("cannot follow the events", "error", err)
			news = nil
		}
		if after, err = j.applyAll(ctx, c, list, after, apply); errors.Is(err, errGap) {
			j.opt.Log.Warn("a NATS server lags behind the others; the events are read again", "error", err)
			c, more, news = j.newChain(after+1), false, nil
		} else if err != nil {
			return err
		}
		if more {
			continue
		}
		select {
		case <-news:
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
