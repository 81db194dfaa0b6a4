package agent

import (
	"context"
	"errors"
	"io"
	"time"
)

// A server that is gone refuses connections, or breaks them. One whose process or host stands still does neither: the only
// sign is that nothing comes. So a request is given up when for a while no byte of it has gone or come, however large it is,
// and the next server is asked.

// How long a server may be silent in the middle of a request.
const (
	firstPatience = 4 * time.Second
	lastPatience  = time.Minute
)

var errSilent = errors.New("the server does not answer")

// listening is a request to a server that must not fall silent.
type listening struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	within time.Duration
}

func listen(ctx context.Context, within time.Duration) *listening {
	l := &listening{within: within}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(within, func() { l.cancel(errSilent) })
	return l
}

// why is the reason for a failure: the context's own says less.
func (l *listening) why(err error) error {
	if err != nil && context.Cause(l.ctx) == errSilent {
		return errSilent
	}
	return err
}

// ended tells whether whoever asked wants no answer any more. It says nothing of the server.
func (l *listening) ended() bool {
	return l.ctx.Err() != nil && context.Cause(l.ctx) != errSilent
}

func (l *listening) end() {
	l.timer.Stop()
	l.cancel(context.Canceled)
}

// of is a body that is heard.
func (l *listening) of(r io.ReadCloser) io.ReadCloser { return heard{r, l} }

type heard struct {
	io.ReadCloser
	by *listening
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if n > 0 {
		h.by.timer.Reset(h.by.within)
	}
	return n, h.by.why(err)
}

func (h heard) Close() error {
	h.by.end()
	return h.ReadCloser.Close()
}

// sent is a body on its way, which does not end the request.
type sent struct {
	io.Reader
	by *listening
}

func (s sent) Read(p []byte) (int, error) {
	s.by.timer.Reset(s.by.within)
	return s.Reader.Read(p)
}
