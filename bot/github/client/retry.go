package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// retry repeats a request after a fault, if repeating it is safe.
//
// A read, a DELETE and a repeatable write are repeated after any fault. Any other write is repeated
// only if GitHub certainly never saw it, that is, if no connection was established. After a broken
// connection, a timeout or a 5xx the write may have been executed: GitHub's front end answers 502
// and 504 for work that its back end completes a moment later, and a 500 or 503 promises nothing
// either. Such a write ends as ErrUnknown, because a duplicate comment is worse than reading the
// list. Rate limits (403 and 429) are refusals and safe to repeat; the limits layer handles them.
type retry struct {
	*env
	next http.RoundTripper
}

// maxRetries bounds the attempts after the first fault.
const maxRetries = 5

func (r *retry) RoundTrip(rq *http.Request) (*http.Response, error) {
	c := callOf(rq)
	safe := !writes(rq) || rq.Method == http.MethodDelete || c.op.repeatable
	doubtful := false // an earlier attempt may have been executed
	if err := rq.Context().Err(); err != nil {
		return nil, err // nothing was sent, so nothing is in doubt
	}
	for n := 0; ; n++ {
		copied, err := again(rq)
		if err != nil {
			return nil, err
		}
		answer, err := r.next.RoundTrip(copied)
		failed := fault(answer, err)
		doubtful = doubtful || failed && writes(rq) && acted(err)
		over := !failed || n >= maxRetries || rq.Context().Err() != nil || doubtful && !safe
		if over || r.pause(rq.Context(), Backoff, r.backoff(n, answer)) != nil {
			// A successful answer can still turn out to be unreadable.
			if doubtful || writes(rq) && err == nil && answer.StatusCode < 300 {
				c.uncertain.Store(true)
			}
			return answer, err
		}
		r.stats.update(func(s *Stats) { s.Retries++ })
	}
}

// fault reports whether an attempt failed in a way that another attempt may not.
func fault(answer *http.Response, err error) bool {
	if err != nil {
		_, ok := errors.AsType[*notSent](err)
		return !ok
	}
	return answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented
}

// acted reports whether GitHub may have executed a request that met a fault.
func acted(err error) bool {
	if err == nil {
		return true // a 5xx
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return false
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return false
	}
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return !ok
}

// notSent is an error from before the request was sent. Repeating the request cannot help.
type notSent struct{ error }

func (e *notSent) Unwrap() error { return e.error }

const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// backoff doubles with each attempt. Its second half is random, so that many clients do not return
// at the same time.
func (r *retry) backoff(n int, answer *http.Response) time.Duration {
	d := min(firstBackoff<<min(n, 10), maxBackoff)
	d = d/2 + time.Duration(r.opt.Jitter()*float64(d/2))
	if answer != nil {
		if asked, ok := retryAfter(answer, r.opt.Now()); ok {
			d = max(d, asked)
		}
	}
	return d
}

// retryAfter reads the Retry-After header, which holds seconds or a date.
func retryAfter(answer *http.Response, now time.Time) (time.Duration, bool) {
	text := answer.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// pause waits for d. It returns an error at once if the context's deadline is earlier.
func (e *env) pause(ctx context.Context, why Reason, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return &limitedError{until: e.opt.Now().Add(d)}
	}
	e.stats.update(func(s *Stats) {
		s.Waits[why]++
		s.Waited[why] += d
	})
	if why != Backoff {
		e.opt.Log.Info("waiting for GitHub's limit", "as", e.identity, "limit", why, "for", d)
	}
	return e.opt.Sleep(ctx, d)
}
