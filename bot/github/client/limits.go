package client

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// limits waits while GitHub refuses to serve an identity, and repeats the refused request. That is
// safe, because GitHub does not execute a request that it refuses.
//
// The primary limit is a number of requests per hour. When none remain, nothing is sent until the
// hour ends. The secondary limit is about pace. GitHub says how long to wait; if it does not, the
// wait is one minute, and it doubles with each further refusal.
//
// REST and GraphQL have a primary limit each, so that one of them may be used up while the other is
// not. A secondary limit stops both.
type limits struct {
	*env
	next http.RoundTripper

	mu      sync.Mutex
	waits   map[resource]wait
	refused int // consecutive secondary refusals that named no time
}

// A resource is what a limit applies to.
type resource string

const (
	everything resource = ""
	rest       resource = "rest"
	graphQL    resource = "graphql"
)

func resourceOf(rq *http.Request) resource {
	if isGraphQL(rq) {
		return graphQL
	}
	return rest
}

// A wait says until when nothing may be sent, and why.
type wait struct {
	until  time.Time
	reason Reason
}

const (
	firstStay = time.Minute
	maxStay   = 16 * time.Minute
)

func (l *limits) RoundTrip(rq *http.Request) (*http.Response, error) {
	of := resourceOf(rq)
	for {
		for why, d := l.closed(of); d > 0; why, d = l.closed(of) {
			if err := l.pause(rq.Context(), why, d); err != nil {
				return nil, &notSent{err}
			}
		}
		copied, err := again(rq)
		if err != nil {
			return nil, err
		}
		answer, err := l.next.RoundTrip(copied)
		if err != nil {
			return nil, err
		}
		refused := l.note(of, answer)
		// Otherwise go-github would refuse further requests by the wall clock, without a wait.
		for _, name := range []string{"X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Limit"} {
			answer.Header.Del(name)
		}
		if !refused {
			return answer, nil
		}
	}
}

// closed returns the wait that is due now, if any.
func (l *limits) closed(of resource) (why Reason, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waits[everything]
	if own := l.waits[of]; own.until.After(w.until) {
		w = own
	}
	return w.reason, w.until.Sub(l.opt.Now())
}

// note reads the limits from an answer, and reports whether the answer is a refusal because of a
// limit.
func (l *limits) note(of resource, answer *http.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer.StatusCode == http.StatusUnauthorized {
		return false // its headers are about the address: GitHub knows nobody else to count the request for
	}
	now := l.opt.Now()
	used := l.primary(of, answer, now)
	if answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusTooManyRequests {
		l.refused = 0
		return false
	}
	asked, named := retryAfter(answer, now)
	switch {
	case named:
		l.close(everything, Secondary, now.Add(max(asked, time.Second)))
	case used && l.waits[of].until.After(now):
		// until is already the end of the hour
	case used, answer.StatusCode == http.StatusTooManyRequests, aboutPace(peek(answer)):
		if !used {
			of = everything
		}
		l.close(of, Secondary, now.Add(min(firstStay<<min(l.refused, 10), maxStay)))
		l.refused++
	default:
		return false
	}
	return true
}

// primary reads how many requests remain, and reports whether none do.
func (l *limits) primary(of resource, answer *http.Response, now time.Time) bool {
	remaining, err := strconv.Atoi(answer.Header.Get("X-RateLimit-Remaining"))
	if err != nil {
		return false
	}
	who := l.identity
	if of == graphQL {
		who += " in GraphQL"
	}
	l.stats.update(func(s *Stats) { s.Remaining[who] = remaining })
	seconds, err := strconv.ParseInt(answer.Header.Get("X-RateLimit-Reset"), 10, 64)
	if remaining > 0 || err != nil {
		return remaining == 0
	}
	// The header has whole seconds. A wrong clock must not make the client wait longer than the
	// limit's hour.
	reset := time.Unix(seconds, 0).Add(time.Second)
	if reset.After(now) && reset.Before(now.Add(2*time.Hour)) {
		l.close(of, Primary, reset)
	}
	return true
}

// close never shortens a wait: a concurrent request may have been told a longer one.
func (l *limits) close(of resource, why Reason, until time.Time) {
	if l.waits == nil {
		l.waits = map[resource]wait{}
	}
	if until.After(l.waits[of].until) {
		l.waits[of] = wait{until, why}
	}
}

// aboutPace distinguishes a secondary refusal from a missing permission. Both are 403.
func aboutPace(body []byte) bool {
	return slices.ContainsFunc([]string{"secondary rate limit", "secondary-rate-limits", "abuse detection", "abuse-rate-limits", "API rate limit exceeded"},
		func(sign string) bool { return bytes.Contains(body, []byte(sign)) })
}
