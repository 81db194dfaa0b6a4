package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	start := newBench().now
	reset := fmt.Sprint(start.Add(20 * time.Minute).Unix())
	past := fmt.Sprint(start.Add(-time.Minute).Unix())
	slow := answer(403, `{"message":"You have exceeded a secondary rate limit."}`)
	tests := map[string]struct {
		steps              []step
		requests           int
		primary, secondary time.Duration
	}{
		"none":                        {steps: []step{status(200, "X-RateLimit-Remaining", "1")}, requests: 2},
		"the last request":            {steps: []step{status(200, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset)}, requests: 2, primary: 20*time.Minute + time.Second},
		"no request left":             {steps: []step{status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset)}, requests: 1, primary: 20*time.Minute + time.Second},
		"the same as 429":             {steps: []step{status(429, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset)}, requests: 1, primary: 20*time.Minute + time.Second},
		"a clock that is ahead":       {steps: []step{status(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", past)}, requests: 1, secondary: time.Minute},
		"an hour that has ended":      {steps: []step{status(200, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", past)}, requests: 2},
		"Retry-After":                 {steps: []step{status(403, "Retry-After", "7")}, requests: 1, secondary: 7 * time.Second},
		"Retry-After with 429":        {steps: []step{status(429, "Retry-After", "7"), status(429, "Retry-After", "3")}, requests: 1, secondary: 10 * time.Second},
		"Retry-After of zero":         {steps: []step{status(429, "Retry-After", "0")}, requests: 1, secondary: time.Second},
		"a date":                      {steps: []step{status(429, "Retry-After", start.Add(9*time.Second).Format(http.TimeFormat))}, requests: 1, secondary: 9 * time.Second},
		"too fast, without a time":    {steps: []step{slow}, requests: 1, secondary: time.Minute},
		"too fast, again and again":   {steps: []step{slow, slow, slow}, requests: 1, secondary: 7 * time.Minute},
		"too fast, a success between": {steps: []step{slow, status(200), slow}, requests: 2, secondary: 2 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := newBench(), &script{steps: tt.steps}
			l := &limits{env: b.env, next: s}
			for range tt.requests {
				rq, _ := request(t, t.Context(), "POST", op{})
				answer, err := l.RoundTrip(rq)
				if err != nil || answer.StatusCode != 200 {
					t.Fatalf("got %v, %v", answer, err)
				}
				if answer.Header.Get("X-RateLimit-Remaining") != "" {
					t.Error("go-github would judge the limit by the wall clock")
				}
			}
			if p, s := b.waited(Primary), b.waited(Secondary); p != tt.primary || s != tt.secondary {
				t.Errorf("waited %v and %v, want %v and %v", p, s, tt.primary, tt.secondary)
			}
		})
	}
}

// TestLongerWaitStands covers two concurrent requests: GitHub tells one to wait for ten minutes and
// the other for one minute.
func TestLongerWaitStands(t *testing.T) {
	t.Parallel()
	b := newBench()
	l := &limits{env: b.env}
	for _, seconds := range []string{"600", "60"} {
		refusal, err := status(403, "Retry-After", seconds)(nil)
		if err != nil || !l.note(rest, refusal) {
			t.Fatalf("%s: not taken for a limit: %v", seconds, err)
		}
	}
	if _, d := l.closed(graphQL); d != 10*time.Minute {
		t.Errorf("waits %v, want 10m", d)
	}
}

func TestMissingPermissionIsNoLimit(t *testing.T) {
	t.Parallel()
	const body = `{"message":"Resource not accessible by integration"}`
	b, s := newBench(), &script{steps: []step{answer(403, body, "X-RateLimit-Remaining", "4000")}}
	rq, _ := request(t, t.Context(), "POST", op{})
	got, err := (&limits{env: b.env, next: s}).RoundTrip(rq)
	if err != nil || got.StatusCode != 403 || string(peek(got)) != body {
		t.Errorf("got %v, %v", got, err)
	}
	if n := b.stats.read().Remaining["token"]; n != 4000 {
		t.Errorf("remaining is %d", n)
	}
}

// TestLimitBeyondTheDeadline checks that a caller whose deadline is before the end of the limit
// gets an error at once, and that nothing is sent.
func TestLimitBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	b, s := newBench(), &script{steps: []step{status(403, "Retry-After", "600")}}
	l := &limits{env: b.env, next: s}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		rq, record := request(t, ctx, "POST", op{})
		_, err := (&retry{env: b.env, next: l}).RoundTrip(rq)
		limited, ok := errors.AsType[*limitedError](err)
		if !ok || !errors.Is(err, ErrLimited) || !limited.until.Equal(b.now.Add(10*time.Minute)) || record.uncertain.Load() {
			t.Errorf("got %v", err)
		}
	}
	if len(s.calls) != 1 {
		t.Errorf("sent %d requests, want 1", len(s.calls))
	}
}
