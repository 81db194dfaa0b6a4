package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Any server of a cluster may answer for a stream, and it may lag. Where a decision depends on the
// newest state, the leading server is asked: it has everything that was acknowledged.

// last returns the newest message of a subject.
func (j *Journal) last(ctx context.Context, s jetstream.Stream, subject string) (*jetstream.RawStreamMsg, error) {
	if !j.external() {
		return s.GetLastMsgForSubject(ctx, subject)
	}
	return j.askLeader(ctx, s, map[string]any{"last_by_subj": subject})
}

// message returns the message with that sequence.
func (j *Journal) message(ctx context.Context, s jetstream.Stream, seq uint64) (*jetstream.RawStreamMsg, error) {
	if !j.external() {
		return s.GetMsg(ctx, seq)
	}
	return j.askLeader(ctx, s, map[string]any{"seq": seq})
}

// lastOf returns the sequence of the newest message of the subjects; 0 means none.
func (j *Journal) lastOf(ctx context.Context, s jetstream.Stream, subjects string) (uint64, error) {
	m, err := j.last(ctx, s, subjects)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

const errNoMessage = 10037

func (j *Journal) askLeader(ctx context.Context, s jetstream.Stream, which map[string]any) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, j.opt.answerIn)
	defer cancel()
	ask, err := json.Marshal(which)
	if err != nil {
		return nil, err
	}
	type answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	said, err := askUntilLed(ctx, func(ctx context.Context) (said answer, err error) {
		m, err := j.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+s.CachedInfo().Config.Name, ask)
		if err != nil {
			return said, err
		}
		if err := json.Unmarshal(m.Data, &said); err != nil {
			return said, fmt.Errorf("reading the server's answer: %w", err)
		}
		if said.Error != nil {
			return said, said.Error
		}
		return said, nil
	})
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == errNoMessage {
		return nil, jetstream.ErrMsgNotFound
	}
	if err != nil {
		return nil, err
	}
	m := said.Message
	header, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil && len(m.Header) > 0 {
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	return &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Seq, Header: header, Data: m.Data, Time: m.Time}, nil
}

// askAgain is the time after which a request is repeated. A request that was on its way to a server
// when the server died, or while its stream had no leader, is never answered, even after a new
// election.
const askAgain = 500 * time.Millisecond

// askUntilLed is untilLed for requests that change nothing: it repeats the request while no answer
// comes, and uses the first answer.
func askUntilLed[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx) // the first answer ends all requests
	defer cancel()
	answers := make(chan answer)
	for {
		go func() {
			value, err := ask(ctx)
			select {
			case answers <- answer{value, err}:
			case <-ctx.Done():
			}
		}()
		select {
		case a := <-answers:
			if a.err == nil || !leaderless(a.err) {
				return a.value, a.err
			}
			select {
			case <-time.After(reconnectWait):
			case <-ctx.Done():
				return a.value, a.err
			}
		case <-time.After(askAgain):
		case <-ctx.Done():
			return *new(T), ctx.Err()
		}
	}
}

// untilLed repeats an operation while its stream has no leader: a new one is elected within
// seconds.
func untilLed(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !leaderless(err) {
			return err
		}
		select {
		case <-time.After(reconnectWait):
		case <-ctx.Done():
			return err
		}
	}
}

// leaderless reports whether a request found no leader, so that nothing was done.
func leaderless(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &api) && api.Code == 503
}
