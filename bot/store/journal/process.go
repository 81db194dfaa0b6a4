package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	processorPrefix = "processor-"
	// Fetched deliveries sit in memory: at most this many at once, and four times as many behind a key that waits.
	processAhead = 64
	// Not a lease: a restart begins at the first unfinished delivery without waiting for it.
	processAckWait = 24 * time.Hour
	journalPause   = time.Second // before the journal is asked again after it failed
)

// Process hands every delivery to handle, one at a time, until ctx ends; then it returns nil. Deliveries of one key are
// handled in the order in which they came. One that fails, by error or panic, is tried again after the pauses of
// Options.Retry, while later ones of its key wait and other keys go on; then it is given up and listed by Dead. Attempts
// are counted on disk, so a delivery that kills the process is given up too.
//
// Only one Process runs on a journal: a second one, by another bot on the same cluster, ends the first with an error.
func (j *Journal) Process(ctx context.Context, handle func(context.Context, Delivery) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumer, err := j.processor(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process deliveries: %w", err)
	}
	p := &processor{j: j, handle: handle, lanes: make(map[string][]*item), due: make(chan string)}
	came, failed := make(chan jetstream.Msg), make(chan error, 1)
	go func() { failed <- j.fetch(ctx, consumer, came) }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("process deliveries: %w", err)
		case msg := <-came:
			p.add(ctx, msg)
		case lane := <-p.due:
			p.run(ctx, lane)
		}
	}
}

// fetch asks for one lot after the other. (The client's endless iterator drops messages when its reader is slow; they
// would come again only after processAckWait.)
func (j *Journal) fetch(ctx context.Context, consumer jetstream.Consumer, to chan<- jetstream.Msg) error {
	for ctx.Err() == nil {
		err := fetchLot(ctx, consumer, to)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if _, gone := consumer.Info(ctx); errors.Is(gone, jetstream.ErrConsumerNotFound) {
			return errors.New("another bot has taken over; run only one on a journal")
		}
		j.opt.Log.Warn("cannot fetch deliveries", "error", err)
		select {
		case <-time.After(journalPause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func fetchLot(ctx context.Context, consumer jetstream.Consumer, to chan<- jetstream.Msg) error {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lot, err := consumer.Fetch(processAhead, jetstream.FetchContext(limited))
	if err != nil {
		return err
	}
	for msg := range lot.Messages() {
		select {
		case to <- msg:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := lot.Error(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // nothing came
}

// processor makes a consumer that begins at the first delivery that is not finished, and ends those of earlier processes.
// What a killed one had in hand is then at once in line again, in order, instead of after a timeout and behind newer ones.
func (j *Journal) processor(ctx context.Context) (jetstream.Consumer, error) {
	start := uint64(1)
	var old []string
	list := j.deliveries.ListConsumers(ctx)
	for info := range list.Info() {
		if !strings.HasPrefix(info.Name, processorPrefix) {
			continue
		}
		floor := info.AckFloor.Stream + 1
		if floor == 1 {
			floor = info.Config.OptStartSeq // it has not finished anything
		}
		if len(old) == 0 || floor < start {
			start = floor
		}
		old = append(old, info.Name)
	}
	if err := list.Err(); err != nil {
		return nil, err
	}
	consumer, err := j.deliveries.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       processorPrefix + nuid.Next(),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       processAckWait,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   max(start, 1),
		MaxAckPending: 4 * processAhead,
	})
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		if err := j.deliveries.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil, err
		}
	}
	return consumer, nil
}

// A processor belongs to one goroutine; timers speak to it through due.
type processor struct {
	j      *Journal
	handle func(context.Context, Delivery) error
	lanes  map[string][]*item // by key: a delivery that waits for its next attempt, and those behind it
	due    chan string
}

type item struct {
	msg      jetstream.Msg
	seq      uint64
	delivery Delivery
}

func (p *processor) add(ctx context.Context, msg jetstream.Msg) {
	it := &item{msg: msg}
	meta, err := msg.Metadata()
	if err == nil {
		it.seq = meta.Sequence.Stream
		it.delivery, err = parseDelivery(msg.Subject(), msg.Headers(), msg.Data())
	}
	if err != nil {
		// Not written by Accept. Nobody can process it, and it must not stop the rest.
		p.j.opt.Log.Error("a message in DELIVERIES is not a delivery", "subject", msg.Subject(), "error", err)
		_ = msg.Term()
		return
	}
	lane := it.delivery.Key
	if lane == "" {
		lane = "\x00" + it.delivery.ID
	}
	p.lanes[lane] = append(p.lanes[lane], it)
	if len(p.lanes[lane]) == 1 {
		p.run(ctx, lane)
	}
}

// run works a lane off up to the first delivery that has to wait.
func (p *processor) run(ctx context.Context, lane string) {
	for len(p.lanes[lane]) > 0 {
		pause, err := p.attempt(ctx, p.lanes[lane][0])
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			time.AfterFunc(pause, func() {
				select {
				case p.due <- lane:
				case <-ctx.Done():
				}
			})
			return
		}
		p.lanes[lane] = p.lanes[lane][1:]
	}
	delete(p.lanes, lane)
}

// attempt returns an error and a pause when the delivery has to be tried again. A failure of the journal itself says nothing
// about the delivery, and is not counted.
func (p *processor) attempt(ctx context.Context, it *item) (time.Duration, error) {
	j, d := p.j, it.delivery
	log := j.opt.Log.With("delivery", d.ID, "event", d.Event)

	state, _, err := getRecord[deliveryState](ctx, j.state, d.ID)
	if err != nil {
		log.Error("cannot read what became of a delivery", "error", err)
		return journalPause, err
	}
	if state.Done {
		return 0, it.msg.Ack()
	}
	if state.Seq != it.seq {
		state = deliveryState{Seq: it.seq}
	}
	if state.Attempts > len(j.opt.Retry) {
		// Ended in its last attempt, by a crash here or in the handler.
		if state.Error == "" {
			state.Error = "the process ended while it was handled"
		}
		return journalPause, p.bury(ctx, it, state)
	}

	state.Attempts++
	if err := putRecord(ctx, j.state, d.ID, state); err != nil {
		log.Error("cannot count an attempt", "error", err)
		return journalPause, err
	}
	err = p.call(ctx, d)
	switch {
	case err == nil:
		return journalPause, p.finish(ctx, it, state)
	case ctx.Err() != nil:
		// A shutdown is not the delivery's fault.
		state.Attempts--
		return 0, errors.Join(err, putRecord(context.WithoutCancel(ctx), j.state, d.ID, state))
	}
	state.Error = err.Error()
	if state.Attempts > len(j.opt.Retry) {
		return journalPause, p.bury(ctx, it, state)
	}
	pause := j.opt.Retry[state.Attempts-1]
	log.Warn("a delivery failed and will be tried again", "attempt", state.Attempts, "in", pause, "error", err)
	if e := putRecord(ctx, j.state, d.ID, state); e != nil {
		log.Error("cannot note a failure", "error", e)
	}
	return pause, err
}

func (p *processor) call(ctx context.Context, d Delivery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.j.opt.Log.Error("panic while processing a delivery", "delivery", d.ID, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return p.handle(ctx, d)
}

// finish writes the mark that counts. It does so even when ctx has ended: the work is done.
func (p *processor) finish(ctx context.Context, it *item, state deliveryState) error {
	ctx = context.WithoutCancel(ctx)
	state.Done, state.Error = true, ""
	if err := putRecord(ctx, p.j.state, it.delivery.ID, state); err != nil {
		return err
	}
	if it.msg.Headers().Get(headerRevived) != "" {
		if err := p.j.state.Purge(ctx, deadKey(it.delivery.ID)); err != nil {
			return err
		}
	}
	return it.msg.Ack()
}

// bury lists the delivery as dead, then lets the lane go on.
func (p *processor) bury(ctx context.Context, it *item, state deliveryState) error {
	d := it.delivery
	err := putRecord(ctx, p.j.state, deadKey(d.ID), DeadDelivery{
		ID: d.ID, Event: d.Event, Received: d.Received,
		Attempts: state.Attempts, Error: state.Error, At: p.j.opt.Now().UTC(), Seq: it.seq,
	})
	if err != nil {
		return err
	}
	p.j.opt.Log.Error("a delivery was given up", "delivery", d.ID, "event", d.Event, "attempts", state.Attempts, "error", state.Error)
	return it.msg.Ack()
}
