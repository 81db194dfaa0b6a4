package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Lease is a runner's right to work on a job. It lasts Options.LeaseFor and as long again with every Extend; when it ran
// out the job goes to whoever asks next. From then on the old holder's Extend, Release and Done fail with ErrLeaseLost and
// change nothing. A holder whose lease ran out unnoticed by anyone still holds it.
type Lease struct {
	Job
	Label string
	// Token counts how often the job was handed out. It grows, on disk: a result that bears a lower one is stale.
	Token uint64

	j        *Journal
	msg      message
	seq      uint64
	revision uint64
}

// A message is what a lease says to JetStream about its job.
type message interface {
	Reply() string
	InProgress() error
	DoubleAck(context.Context) error
	NakWithDelay(time.Duration) error
}

func consumerName(label string) string { return "runner-" + label }

// Lease waits for a job of that label. It may hand one out although ctx has just ended: after a nil error there is a lease.
func (j *Journal) Lease(ctx context.Context, label string) (*Lease, error) {
	return j.LeaseTo(ctx, label, "")
}

// LeaseTo is Lease for a holder that can Attach to the job later.
func (j *Journal) LeaseTo(ctx context.Context, label, holder string) (*Lease, error) {
	if err := checkToken("label", label); err != nil {
		return nil, fmt.Errorf("lease a job: %w", err)
	}
	consumer, err := j.jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       consumerName(label),
		FilterSubject: "jobs." + label + ".*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       j.opt.LeaseFor,
		MaxAckPending: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("lease a job for %s: %w", label, err)
	}
	for {
		msg, err := nextJob(ctx, consumer)
		if err != nil {
			return nil, fmt.Errorf("lease a job for %s: %w", label, err)
		}
		// Half of it would leave the job to nobody until the lease runs out.
		l, err := j.acquire(context.WithoutCancel(ctx), label, holder, msg)
		if err != nil {
			return nil, fmt.Errorf("lease a job for %s: %w", label, err)
		}
		if l != nil {
			return l, nil
		}
	}
}

// pull is how long one request for a job stays with the server.
const pull = time.Second

// nextJob asks again and again. It never takes a request back: the server may have answered it already, and the job in that
// answer would belong to nobody until its lease ran out. A job that comes after ctx has ended is handed on at once.
func nextJob(ctx context.Context, consumer jetstream.Consumer) (jetstream.Msg, error) {
	type answer struct {
		msg jetstream.Msg
		err error
	}
	for ctx.Err() == nil {
		answers := make(chan answer, 1)
		go func() {
			msg, err := consumer.Next(jetstream.FetchMaxWait(pull))
			answers <- answer{msg, err}
		}()
		select {
		case a := <-answers:
			if a.err == nil {
				return a.msg, nil
			}
			if !errors.Is(a.err, nats.ErrTimeout) && !errors.Is(a.err, jetstream.ErrNoMessages) {
				return nil, a.err
			}
		case <-ctx.Done():
			go func() {
				if a := <-answers; a.err == nil {
					_ = a.msg.Nak() // if it fails the lease runs out
				}
			}()
		}
	}
	return nil, ctx.Err()
}

// acquire writes that the job was handed out again; nil without an error means that there is nothing left to do for it.
func (j *Journal) acquire(ctx context.Context, label, holder string, msg jetstream.Msg) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	id := msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:]
	seq := meta.Sequence.Stream
	for {
		rec, revision, err := getRecord[leaseRecord](ctx, j.leases, id)
		if err != nil {
			return nil, err
		}
		if rec.Seq == seq && (rec.State == finished || rec.State == cancelled) {
			return nil, msg.DoubleAck(ctx) // its holder ended between the record and the acknowledgement
		}
		rec = leaseRecord{Seq: seq, Token: rec.Token + 1, State: leased, Holder: holder, Reply: msg.Reply()}
		next, err := j.writeLease(ctx, id, rec, revision)
		if isConflict(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &Lease{Job: Job{ID: id, Payload: msg.Data()}, Label: label, Token: rec.Token, j: j, msg: msg, seq: seq, revision: next}, nil
	}
}

// Extend says that the runner is alive. The error tells it to stop: ErrCancelled or ErrLeaseLost.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("extend lease of job %s: %w", l.ID, err)
	}
	if err := l.msg.InProgress(); err != nil {
		return fmt.Errorf("extend lease of job %s: %w", l.ID, err)
	}
	return nil
}

// check says whether the lease is still this one's.
func (l *Lease) check(ctx context.Context) error {
	rec, revision, err := getRecord[leaseRecord](ctx, l.j.leases, l.ID)
	switch {
	case err != nil:
		return err
	case revision == l.revision:
		return nil
	case rec.Seq == l.seq && rec.State == cancelled:
		return ErrCancelled
	default:
		return ErrLeaseLost
	}
}

// Done finishes the job: nobody gets it again. Write the result to the run's events first.
func (l *Lease) Done(ctx context.Context) error {
	if err := l.end(ctx, finished); err != nil {
		return fmt.Errorf("finish job %s: %w", l.ID, err)
	}
	// The record decides already; without this the next Lease would tidy up.
	if err := l.msg.DoubleAck(ctx); err != nil {
		return fmt.Errorf("finish job %s: %w", l.ID, err)
	}
	return nil
}

// Release gives the job back, to be handed out after delay.
func (l *Lease) Release(ctx context.Context, delay time.Duration) error {
	if err := l.end(ctx, released); err != nil {
		return fmt.Errorf("release job %s: %w", l.ID, err)
	}
	if err := l.msg.NakWithDelay(delay); err != nil {
		return fmt.Errorf("release job %s: %w", l.ID, err)
	}
	return nil
}

func (l *Lease) end(ctx context.Context, state leaseState) error {
	_, err := l.j.writeLease(ctx, l.ID, leaseRecord{Seq: l.seq, Token: l.Token, State: state}, l.revision)
	if !isConflict(err) {
		return err
	}
	if err := l.check(ctx); err != nil {
		return err
	}
	return ErrLeaseLost
}

// Hold keeps the lease alive until stop is called. The context it returns ends at once, with ErrCancelled or ErrLeaseLost as
// its cause, when the job is no longer this runner's.
func (l *Lease) Hold(ctx context.Context) (held context.Context, stop func(), err error) {
	held, cancel := context.WithCancelCause(ctx)
	changes, err := l.j.leases.Watch(held, l.ID)
	if err != nil {
		cancel(err)
		return nil, nil, fmt.Errorf("hold lease of job %s: %w", l.ID, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = changes.Stop() }()
		beat := time.NewTicker(l.j.opt.LeaseFor / 3)
		defer beat.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-beat.C:
			case <-changes.Updates():
			}
			err := l.Extend(held)
			if errors.Is(err, ErrCancelled) || errors.Is(err, ErrLeaseLost) {
				cancel(err)
				return
			}
			if err != nil && held.Err() == nil {
				// The journal may come back before the lease runs out.
				l.j.opt.Log.Warn("cannot extend a lease", "job", l.ID, "error", err)
			}
		}
	}()
	return held, func() { cancel(context.Canceled); <-ended }, nil
}
