package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A script performs its steps, one per request, and then answers 200 to every request.
type script struct {
	mu    sync.Mutex
	steps []func(*http.Request) (*http.Response, error)
	calls []*http.Request
}

func (s *script) RoundTrip(rq *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.calls = append(s.calls, rq)
	step := status(200)
	if len(s.steps) > 0 {
		step, s.steps = s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	if rq.Body != nil {
		if raw, err := io.ReadAll(rq.Body); err != nil || string(raw) != "{}" {
			return nil, errors.New("the body was not sent whole")
		}
	}
	return step(rq)
}

type step = func(*http.Request) (*http.Response, error)

// status answers with a status code. The headers are pairs of name and value.
func status(code int, headers ...string) step { return answer(code, "", headers...) }

func answer(code int, body string, headers ...string) step {
	return func(rq *http.Request) (*http.Response, error) {
		out := &http.Response{StatusCode: code, Header: http.Header{}, Request: rq, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
		for i := 0; i+1 < len(headers); i += 2 {
			out.Header.Set(headers[i], headers[i+1])
		}
		return out, nil
	}
}

func breaks(err error) step {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// A bench is an env whose clock advances when code sleeps.
type bench struct {
	*env
	mu  sync.Mutex
	now time.Time
}

func newBench() *bench {
	b := &bench{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b.env = &env{identity: "token", stats: newCounters(), opt: Options{Now: b.Now, Sleep: b.Sleep, Jitter: func() float64 { return 1 }}.withDefaults()}
	return b
}

func (b *bench) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) Sleep(ctx context.Context, d time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
	return ctx.Err()
}

func (b *bench) waited(why Reason) time.Duration { return b.stats.read().Waited[why] }

// request returns a request and the record of its call.
func request(t *testing.T, ctx context.Context, method string, o op) (*http.Request, *call) {
	t.Helper()
	record := &call{op: o}
	var body io.Reader
	if method == http.MethodPost || method == http.MethodPatch {
		body = bytes.NewReader([]byte("{}"))
	}
	rq, err := http.NewRequestWithContext(withCall(ctx, record), method, "https://api.github.com/x", body)
	if err != nil {
		t.Fatal(err)
	}
	return rq, record
}
