package journal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Attach returns the lease that LeaseTo gave to the holder under that token, in this process or in an earlier one. It fails
// with ErrFinished, ErrCancelled or ErrLeaseLost where that lease is over.
func (j *Journal) Attach(ctx context.Context, id string, token uint64, holder string) (*Lease, error) {
	if err := checkToken("job id", id); err != nil {
		return nil, fmt.Errorf("attach to a job: %w", err)
	}
	l, err := j.attach(ctx, id, token, holder)
	if err != nil {
		return nil, fmt.Errorf("attach to job %s: %w", id, err)
	}
	return l, nil
}

func (j *Journal) attach(ctx context.Context, id string, token uint64, holder string) (*Lease, error) {
	rec, revision, err := getRecord[leaseRecord](ctx, j.leases, id)
	if err != nil {
		return nil, err
	}
	switch {
	case revision == 0 || rec.Token != token:
		return nil, ErrLeaseLost
	case rec.State == cancelled:
		return nil, ErrCancelled
	case rec.State == finished:
		return nil, ErrFinished
	case rec.State != leased || rec.Holder != holder:
		return nil, ErrLeaseLost
	}
	msg, err := j.jobs.GetMsg(ctx, rec.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrLeaseLost // it was ended since the record was read
	}
	if err != nil {
		return nil, err
	}
	label, _, _ := strings.Cut(strings.TrimPrefix(msg.Subject, "jobs."), ".")
	return &Lease{
		Job: Job{ID: id, Payload: msg.Data}, Label: label, Token: token,
		j: j, msg: handedOut{nc: j.nc, reply: rec.Reply}, seq: rec.Seq, revision: revision,
	}, nil
}

// handedOut is a message that was received before this process was: what remains of it is the address for the answers. The
// client library speaks only for messages that it received itself, so the words of JetStream's protocol are written here.
type handedOut struct {
	nc    *nats.Conn
	reply string
}

func (m handedOut) Reply() string { return m.reply }

func (m handedOut) InProgress() error { return m.nc.Publish(m.reply, []byte("+WPI")) }

func (m handedOut) DoubleAck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := m.nc.RequestWithContext(ctx, m.reply, []byte("+ACK"))
	return err
}

func (m handedOut) NakWithDelay(delay time.Duration) error {
	word := "-NAK"
	if delay > 0 {
		word += ` {"delay": ` + strconv.FormatInt(delay.Nanoseconds(), 10) + `}`
	}
	return m.nc.Publish(m.reply, []byte(word))
}
