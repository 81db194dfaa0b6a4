package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	readAhead    = 64          // deliveries that are in memory at once
	journalPause = time.Second // pause after a failure of the journal
	noteEvery    = time.Second // how often Process writes its position, and checks that it is still the processor
)

// Process calls handle for every delivery, one at a time in the order of arrival, until ctx ends;
// then it returns nil. A delivery that fails, by an error or a panic, is retried after the pauses
// of Options.Retry, while others continue; then it is given up and listed by Dead. Attempts are
// counted on disk, so a delivery that kills the process is given up, too.
//
// Process continues at the position of the last process, and skips every delivery whose mark says
// that it is done. So neither a lost connection nor a kill leaves a delivery behind.
//
// Only one Process runs on a journal: that of the leader (Campaign). A second Process, of an older
// version that has no election, ends the first with an error.
func (j *Journal) Process(ctx context.Context, handle func(context.Context, webhook.Delivery) error) error {
	p := &processor{j: j, handle: handle}
	err := p.run(ctx)
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.opt.answerIn)
		defer cancel()
		_ = p.saveCursor(late) // the next process would otherwise read a few deliveries that are done
		return nil
	}
	return fmt.Errorf("process deliveries: %w", err)
}

// cursor is the position up to which deliveries are done, and its writer.
type cursor struct {
	Owner string `json:"owner"`
	Next  uint64 `json:"next"`            // all before it are done or given up
	Epoch uint64 `json:"epoch,omitempty"` // of the owner's lead
}

// Delivery ids have no dot, so this cannot be one.
const placeKey = "processor.place"

// A processor belongs to one goroutine.
type processor struct {
	j      *Journal
	handle func(context.Context, webhook.Delivery) error

	next  uint64   // the next sequence to read
	again []repeat // deliveries that wait for their next attempt

	owner string
	epoch uint64
	when  time.Time // when the position was last written
}

type repeat struct {
	seq uint64
	due time.Time
}

func (p *processor) run(ctx context.Context) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	var list []stored
	for ctx.Err() == nil {
		if time.Since(p.when) >= noteEvery {
			if err := p.saveCursor(ctx); errors.Is(err, errTaken) {
				return err
			} else if err != nil {
				p.j.opt.Log.Warn("cannot note how far deliveries are done", "error", err)
			}
		}
		if i := slices.IndexFunc(p.again, func(r repeat) bool { return !time.Now().Before(r.due) }); i >= 0 {
			seq := p.again[i].seq
			p.again = slices.Delete(p.again, i, i+1)
			p.repeat(ctx, seq)
			continue
		}
		if len(list) > 0 {
			p.next = list[0].seq + 1
			p.try(ctx, list[0])
			list = list[1:]
			continue
		}
		news := p.j.arrived.wait()
		var err error
		if list, _, err = p.j.page(ctx, "DELIVERIES", "", p.next, readAhead); err != nil && ctx.Err() == nil {
			p.j.opt.Log.Warn("cannot read deliveries", "error", err)
			news = nil
		}
		if len(list) == 0 {
			p.wait(ctx, news)
		}
	}
	return ctx.Err()
}

// wait returns when there may be something to do.
func (p *processor) wait(ctx context.Context, news <-chan struct{}) {
	pause := pollEvery
	for _, r := range p.again {
		pause = min(pause, time.Until(r.due))
	}
	select {
	case <-news:
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

var errTaken = errors.New("another bot has taken over the deliveries (is one of an older version on the same NATS server? stop it)")

// claim makes this process the processor, in place of any other. It retries until the journal
// answers: without deliveries there is nothing else to do.
func (p *processor) claim(ctx context.Context) error {
	for {
		err := p.tryClaim(ctx)
		if err == nil || errors.Is(err, errGarbled) {
			return err
		}
		if ctx.Err() == nil {
			p.j.opt.Log.Warn("cannot begin to process deliveries; it is tried again soon", "error", err)
		}
		select {
		case <-time.After(journalPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *processor) tryClaim(ctx context.Context) error {
	was, revision, err := getRecord[cursor](ctx, p.j.state, placeKey)
	if err != nil {
		return err
	}
	p.j.ObserveTerm(was.Epoch)
	if p.epoch, err = p.j.fence(); err != nil {
		return err
	}
	p.next, p.owner = max(was.Next, 1), nuid.Next()
	if _, err := writeRecord(ctx, p.j.state, placeKey, cursor{Owner: p.owner, Next: p.next, Epoch: p.epoch}, revision); err != nil {
		return err
	}
	p.when = time.Now()
	return nil
}

// saveCursor writes the position up to which everything is done.
func (p *processor) saveCursor(ctx context.Context) error {
	now, revision, err := getRecord[cursor](ctx, p.j.state, placeKey)
	if err != nil {
		return err
	}
	if revision > 0 && now.Owner != p.owner {
		return errTaken
	}
	p.when = time.Now()
	done := cursor{Owner: p.owner, Next: p.next, Epoch: p.epoch}
	for _, r := range p.again {
		done.Next = min(done.Next, r.seq)
	}
	if revision > 0 && done == now {
		return nil
	}
	_, err = writeRecord(ctx, p.j.state, placeKey, done, revision)
	if IsConflict(err) {
		return nil // by another process, which the next attempt finds out
	}
	return err
}

// repeat reads a delivery again: waiting deliveries are not kept in memory.
func (p *processor) repeat(ctx context.Context, seq uint64) {
	ask, cancel := context.WithTimeout(ctx, p.j.opt.answerIn)
	defer cancel()
	m, err := p.j.message(ask, p.j.deliveries, seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound): // older than deliveries are kept
	case err != nil:
		p.later(seq, journalPause)
	default:
		p.try(ctx, stored{subject: m.Subject, header: m.Header, data: m.Data, seq: m.Sequence, at: m.Time})
	}
}

func (p *processor) later(seq uint64, pause time.Duration) {
	p.again = append(p.again, repeat{seq, time.Now().Add(pause)})
}

// marked is the mark of a delivery as it was read. A write is conditional on that revision: a
// process that was stopped must not undo what another has written since.
type marked struct {
	deliveryState
	revision uint64
}

func (p *processor) marked(ctx context.Context, id string) (*marked, error) {
	state, revision, err := getRecord[deliveryState](ctx, p.j.state, id)
	return &marked{state, revision}, err
}

func (p *processor) mark(ctx context.Context, id string, m *marked) error {
	revision, err := writeRecord(ctx, p.j.state, id, m.deliveryState, m.revision)
	if err != nil {
		return fmt.Errorf("mark delivery %s: %w", id, err)
	}
	m.revision = revision
	return nil
}

// try handles a delivery, or schedules a later attempt. A failure of the journal says nothing about
// the delivery, and is not counted.
func (p *processor) try(ctx context.Context, m stored) {
	if m.subject == probeSubject {
		return
	}
	d, err := parseDelivery(m.subject, m.header, m.data)
	if err != nil {
		// Not written by Accept. It cannot be processed, and must not stop the rest.
		p.j.opt.Log.Error("a message in DELIVERIES is not a delivery", "subject", m.subject, "error", err)
		return
	}
	log := p.j.opt.Log.With("delivery", d.ID, "event", d.Event)
	state, err := p.marked(ctx, d.ID)
	if err != nil {
		log.Error("cannot read what became of a delivery", "error", err)
		p.later(m.seq, journalPause)
		return
	}
	if state.Done || state.Seq > m.seq || state.Seq == m.seq && state.Dead {
		return // or it was given up, and a later copy replaces it
	}
	if state.Seq != m.seq {
		state.deliveryState = deliveryState{Seq: m.seq}
	}
	if state.Attempts <= len(p.j.opt.Retry) {
		state.Attempts++
		if err := p.mark(ctx, d.ID, state); err != nil {
			log.Error("cannot count an attempt", "error", err)
			p.later(m.seq, journalPause)
			return
		}
		err = p.call(ctx, d)
		// The work is done, and a shutdown is not the delivery's fault: this is written even after
		// ctx has ended.
		note := context.WithoutCancel(ctx)
		switch {
		case err == nil:
			err = p.finish(note, m, d, state)
		case ctx.Err() != nil:
			p.later(m.seq, 0) // by the next process
			state.Attempts--
			err = p.mark(note, d.ID, state)
		default:
			p.failed(note, m, d, state, err)
			return
		}
		if err != nil {
			log.Error("cannot note what became of a delivery", "error", err)
			p.later(m.seq, journalPause)
		}
		return
	}
	// It was ended in its last attempt, by a crash here or in the handler.
	state.Error = cmp.Or(state.Error, "the process ended while it was handled")
	p.deadLetter(ctx, m, d, state)
}

// failed schedules another attempt, or gives the delivery up.
func (p *processor) failed(ctx context.Context, m stored, d webhook.Delivery, state *marked, why error) {
	state.Error = why.Error()
	if state.Attempts > len(p.j.opt.Retry) {
		p.deadLetter(ctx, m, d, state)
		return
	}
	pause := p.j.opt.Retry[state.Attempts-1]
	log := p.j.opt.Log.With("delivery", d.ID, "event", d.Event)
	log.Warn("a delivery failed and will be tried again", "attempt", state.Attempts, "in", pause, "error", why)
	if err := p.mark(ctx, d.ID, state); err != nil {
		log.Error("cannot note a failure", "error", err)
	}
	p.later(m.seq, pause)
}

func (p *processor) call(ctx context.Context, d webhook.Delivery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.j.opt.Log.Error("panic while processing a delivery", "delivery", d.ID, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return p.handle(ctx, d)
}

// finish writes the final mark.
func (p *processor) finish(ctx context.Context, m stored, d webhook.Delivery, state *marked) error {
	state.Done, state.Error = true, ""
	if err := p.mark(ctx, d.ID, state); err != nil {
		return err
	}
	if m.header.Get(headerRevived) == "" {
		return nil
	}
	return p.j.clearDeadLetter(ctx, d.ID)
}

// deadLetter lists the delivery as dead, then marks it. The order matters: only a copy of a listed
// delivery is accepted.
func (p *processor) deadLetter(ctx context.Context, m stored, d webhook.Delivery, state *marked) {
	err := putRecord(ctx, p.j.state, deadKey(d.ID), DeadDelivery{
		ID: d.ID, Event: d.Event, Received: d.Received,
		Attempts: state.Attempts, Error: state.Error, At: p.j.opt.Now().UTC(), Seq: m.seq,
	})
	if err == nil {
		state.Dead = true
		err = p.mark(ctx, d.ID, state)
	}
	if err != nil {
		p.j.opt.Log.Error("cannot note that a delivery is given up", "delivery", d.ID, "error", err)
		p.later(m.seq, journalPause)
		return
	}
	p.j.opt.Log.Error("a delivery was given up", "delivery", d.ID, "event", d.Event, "attempts", state.Attempts, "error", state.Error)
}
