package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	refused := breaks(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	reset := breaks(&net.OpError{Op: "read", Err: syscall.ECONNRESET})
	tests := map[string]struct {
		method     string
		repeatable bool
		steps      []step
		sent       int
		status     int // 0 for an error
		unknown    bool
	}{
		"a read after 502":                    {method: "GET", steps: []step{status(502)}, sent: 2, status: 200},
		"a read after a reset":                {method: "GET", steps: []step{reset, reset}, sent: 3, status: 200},
		"a read after the end of a stream":    {method: "GET", steps: []step{breaks(io.ErrUnexpectedEOF)}, sent: 2, status: 200},
		"a read that fails for ever":          {method: "GET", steps: []step{reset, reset, reset, reset, reset, status(503)}, sent: 6, status: 503},
		"a read that is refused":              {method: "GET", steps: []step{status(404)}, sent: 1, status: 404},
		"a write before any connection":       {method: "POST", steps: []step{refused, refused}, sent: 3, status: 200},
		"a write that is never connected":     {method: "POST", steps: []step{refused, refused, refused, refused, refused, refused}, sent: 6},
		"a write without a host":              {method: "POST", steps: []step{breaks(&net.DNSError{})}, sent: 2, status: 200},
		"a write that is refused":             {method: "POST", steps: []step{status(422)}, sent: 1, status: 422},
		"a write after a reset":               {method: "POST", steps: []step{reset}, sent: 1, unknown: true},
		"a write after a time-out":            {method: "POST", steps: []step{breaks(context.DeadlineExceeded)}, sent: 1, unknown: true},
		"a write after 500":                   {method: "POST", steps: []step{status(500)}, sent: 1, status: 500, unknown: true},
		"a write after 502":                   {method: "PATCH", steps: []step{status(502)}, sent: 1, status: 502, unknown: true},
		"a write after 503":                   {method: "POST", steps: []step{status(503)}, sent: 1, status: 503, unknown: true},
		"a repeatable write after a reset":    {method: "POST", repeatable: true, steps: []step{reset}, sent: 2, status: 200},
		"a repeatable write, lost to the end": {method: "PATCH", repeatable: true, steps: []step{refused, reset, refused, refused, refused, refused}, sent: 6, unknown: true},
		"a repeatable write, lost, then refused": {method: "PATCH", repeatable: true, steps: []step{reset, status(403)}, sent: 2,
			status: 403, unknown: true},
		"a deletion after a reset": {method: "DELETE", steps: []step{reset, status(404)}, sent: 2, status: 404, unknown: true},
		"no token":                 {method: "GET", steps: []step{breaks(&notSent{errNoToken})}, sent: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := newBench(), &script{steps: tt.steps}
			rq, record := request(t, t.Context(), tt.method, op{repeatable: tt.repeatable})
			answer, err := (&retry{env: b.env, next: s}).RoundTrip(rq)
			if len(s.calls) != tt.sent {
				t.Errorf("sent %d times, want %d", len(s.calls), tt.sent)
			}
			if (err != nil) != (tt.status == 0) || err == nil && answer.StatusCode != tt.status {
				t.Errorf("got %v, %v, want status %d", answer, err, tt.status)
			}
			// A success sets uncertain, too; it matters only for errors.
			if failed := tt.status == 0 || tt.status >= 300; failed && record.uncertain.Load() != tt.unknown {
				t.Errorf("unknown is %v, want %v", record.uncertain.Load(), tt.unknown)
			}
			if got := b.stats.read().Retries; int(got) != tt.sent-1 {
				t.Errorf("%d retries are counted, want %d", got, tt.sent-1)
			}
		})
	}
}

func TestBackoffDoublesWithinItsBounds(t *testing.T) {
	t.Parallel()
	b := newBench()
	r := &retry{env: b.env}
	for n, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		b.opt.Jitter = func() float64 { return 1 }
		high := r.backoff(n, nil)
		b.opt.Jitter = func() float64 { return 0 }
		if low := r.backoff(n, nil); high != want || low != want/2 {
			t.Errorf("retry %d waits %v to %v, want %v to %v", n, low, high, want/2, want)
		}
	}
	asks, err := status(503, "Retry-After", "90")(nil)
	if err != nil || r.backoff(0, asks) != 90*time.Second {
		t.Errorf("Retry-After: waits %v", r.backoff(0, asks))
	}
	if got := r.backoff(60, nil); got > maxBackoff {
		t.Errorf("the 60th wait is %v", got)
	}
}

func TestRetryEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b, s := newBench(), &script{}
	s.steps = []step{func(rq *http.Request) (*http.Response, error) {
		cancel()
		return nil, io.EOF
	}}
	rq, record := request(t, ctx, "POST", op{repeatable: true})
	if _, err := (&retry{env: b.env, next: s}).RoundTrip(rq); err == nil || len(s.calls) != 1 {
		t.Errorf("sent %d times, %v", len(s.calls), err)
	}
	if !record.uncertain.Load() {
		t.Error("a write that was sent and given up is not unknown")
	}
}

func TestNothingIsSentAfterTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, s := newBench(), &script{}
	rq, record := request(t, ctx, "POST", op{})
	_, err := (&retry{env: b.env, next: s}).RoundTrip(rq)
	if !errors.Is(err, context.Canceled) || len(s.calls) > 0 || record.uncertain.Load() {
		t.Errorf("sent %d times, in doubt %v: %v", len(s.calls), record.uncertain.Load(), err)
	}
}

// TestAttemptEndsInTime checks that an answer that does not arrive, or stops in the middle, is a
// fault.
func TestAttemptEndsInTime(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		<-done
	}))
	t.Cleanup(func() { close(done); slow.Close() })
	for _, path := range []string{"/none", "/half"} {
		b := newBench()
		b.opt.Timeout = 20 * time.Millisecond
		rq, err := http.NewRequestWithContext(t.Context(), http.MethodGet, slow.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&once{env: b.env, next: &http.Transport{}}).RoundTrip(rq)
		if !fault(nil, err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
		if b.stats.read().Requests[Request{Read, Lost}] != 1 {
			t.Errorf("%s: the stats are %v", path, b.stats.read().Requests)
		}
	}
}
