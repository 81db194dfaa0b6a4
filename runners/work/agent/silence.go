package agent

import (
	"context"
	"errors"
	"io"
	"time"
)

// A server that has stopped refuses connections, or breaks them. A server whose process or host
// hangs does neither: the only sign is silence. So a request is given up if no byte of it was sent
// or received for a while, however large it is, and the next server is asked.

// Limits on a server's silence during a request.
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

// why returns the reason for a failure. The context's own error says less.
func (l *listening) why(err error) error {
	if err != nil && context.Cause(l.ctx) == errSilent {
		return errSilent
	}
	return err
}

// ended reports whether the caller no longer wants the answer. That says nothing about the server.
func (l *listening) ended() bool {
	return l.ctx.Err() != nil && context.Cause(l.ctx) != errSilent
}

func (l *listening) end() {
	l.timer.Stop()
	l.cancel(context.Canceled)
}

// of returns a body whose reads reset the timer.
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

// sent is a request body whose reads reset the timer. Closing it does not end the request.
type sent struct {
	io.Reader
	by *listening
}

func (s sent) Read(p []byte) (int, error) {
	s.by.timer.Reset(s.by.within)
	return s.Reader.Read(p)
}
