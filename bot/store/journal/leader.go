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

// Of a cluster any server may answer for a stream, from what it has so far. Where a decision hangs on the newest state, the
// one that leads is asked: what it has is what was acknowledged.

// last is the newest message of a subject.
func (j *Journal) last(ctx context.Context, s jetstream.Stream, subject string) (*jetstream.RawStreamMsg, error) {
	if !j.external() {
		return s.GetLastMsgForSubject(ctx, subject)
	}
	return j.askLeader(ctx, s, map[string]any{"last_by_subj": subject})
}

// message is the one of that sequence.
func (j *Journal) message(ctx context.Context, s jetstream.Stream, seq uint64) (*jetstream.RawStreamMsg, error) {
	if !j.external() {
		return s.GetMsg(ctx, seq)
	}
	return j.askLeader(ctx, s, map[string]any{"seq": seq})
}

// lastOf is the sequence of the newest message of the subjects; 0 is none.
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

// askAgain is after what time a question is asked once more. One that was on its way to a server when that died, or when its stream
// had nobody to lead it, is answered by nobody, also when another leads soon after.
const askAgain = 500 * time.Millisecond

// askUntilLed is untilLed for what changes nothing: it asks once more while no answer comes. The first one counts.
func askUntilLed[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithCancel(ctx) // all questions end with the first answer
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

// untilLed does something again while nobody leads what it asks for: a new leader is found within seconds.
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

// leaderless tells whether a request found nobody to do it, and nothing was done.
func leaderless(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &api) && api.Code == 503
}
