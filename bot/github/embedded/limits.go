package embedded

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Limits are the rate limits. Zero stands for GitHub's limit, a negative number for no limit.
type Limits struct {
	PerHour          int // primary limit of one user or installation, for REST and GraphQL each; GitHub's is 5000
	Anonymous        int // primary limit of callers without a token; GitHub's is 60
	ContentPerMinute int // requests that create or change content; GitHub's is 80
	ContentPerHour   int // GitHub's is 500
	PointsPerMinute  int // a read costs 1 point, a write 5; GitHub's is 900
	Concurrent       int // GitHub's is 100
	RetryAfter       time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		PerHour:          cmp.Or(l.PerHour, 5000),
		Anonymous:        cmp.Or(l.Anonymous, 60),
		ContentPerMinute: cmp.Or(l.ContentPerMinute, 80),
		ContentPerHour:   cmp.Or(l.ContentPerHour, 500),
		PointsPerMinute:  cmp.Or(l.PointsPerMinute, 900),
		Concurrent:       cmp.Or(l.Concurrent, 100),
		RetryAfter:       cmp.Or(l.RetryAfter, time.Minute),
	}
}

// A meter holds the use that one caller made of the limits.
type meter struct {
	used    int
	reset   time.Time
	content []time.Time // in the last hour
	points  []time.Time // one entry per point, in the last minute
}

// meter returns the caller's meter. REST and GraphQL are counted separately.
func (s *Server) meter(rq *request) *meter {
	key := rq.resource() + " " + rq.actor.key()
	m := s.meters[key]
	if m == nil {
		m = &meter{}
		s.meters[key] = m
	}
	if now := s.now(); !now.Before(m.reset) {
		m.used, m.reset = 0, now.Add(time.Hour)
	}
	return m
}

func (s *Server) primary(a actor) int {
	if a.anonymous() {
		return s.opt.Limits.Anonymous
	}
	return s.opt.Limits.PerHour
}

func over(n, limit int) bool { return limit >= 0 && n >= limit }

// resource returns GitHub's word for the limit that counts the request.
func (rq *request) resource() string {
	if rq.URL.Path == "/graphql" {
		return "graphql"
	}
	return "core"
}

// changes reports whether a request creates content. Requests for tokens and redeliveries do not
// count as content, and neither do queries.
func changes(r *http.Request) bool {
	return r.URL.Path != "/graphql" && r.Method != http.MethodGet && r.Method != http.MethodHead && len(r.URL.Path) > 5 && r.URL.Path[:5] != "/app/"
}

// admit refuses a caller who exceeds a limit.
func (s *Server) admit(rq *request) error {
	m, l, now := s.meter(rq), s.opt.Limits, s.now()
	if over(m.used, s.primary(rq.actor)) {
		if rq.resource() == "graphql" {
			return &apiError{Status: 200, Type: "RATE_LIMITED", Message: fmt.Sprintf("API rate limit exceeded for %s.", rq.actor.describe())}
		}
		return &apiError{Status: 403, Message: fmt.Sprintf("API rate limit exceeded for %s.", rq.actor.describe()),
			Doc: docs + "/overview/rate-limits-for-the-rest-api"}
	}
	since := func(times []time.Time, age time.Duration) []time.Time {
		return slices.DeleteFunc(times, func(t time.Time) bool { return !t.After(now.Add(-age)) })
	}
	m.points = since(m.points, time.Minute)
	m.content = since(m.content, time.Hour)
	lastMinute := since(slices.Clone(m.content), time.Minute)
	switch {
	case l.Concurrent >= 0 && s.running > l.Concurrent, over(len(m.points), l.PointsPerMinute):
		return secondary(l.RetryAfter, "Please wait a few minutes before you try again.")
	case changes(rq.Request) && (over(len(lastMinute), l.ContentPerMinute) || over(len(m.content), l.ContentPerHour)):
		return secondary(l.RetryAfter, "You have been temporarily blocked from content creation. Please retry your request again later.")
	}
	cost := 1
	if changes(rq.Request) {
		cost = 5
		m.content = append(m.content, now)
	}
	m.points = append(m.points, slices.Repeat([]time.Time{now}, cost)...)
	return nil
}

// secondary returns the refusal of a secondary rate limit. Clients recognize it by its
// documentation URL.
func secondary(retryAfter time.Duration, advice string) *apiError {
	seconds := max(int(retryAfter/time.Second), 1)
	return &apiError{Status: 403, Message: "You have exceeded a secondary rate limit. " + advice,
		Doc:    docs + "/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
		Header: http.Header{"Retry-After": {strconv.Itoa(seconds)}}}
}

// account counts the request and sets the rate limit headers.
func (s *Server) account(rq *request, counted bool) {
	m, limit := s.meter(rq), s.primary(rq.actor)
	if counted && !over(m.used, limit) {
		m.used++
	}
	if limit < 0 {
		limit = 1 << 30
	}
	rq.header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	rq.header.Set("X-RateLimit-Remaining", strconv.Itoa(limit-m.used))
	rq.header.Set("X-RateLimit-Used", strconv.Itoa(m.used))
	rq.header.Set("X-RateLimit-Reset", itoa(m.reset.Unix()))
	rq.header.Set("X-RateLimit-Resource", rq.resource())
	if t := rq.actor.token; t != nil && t.inst == nil {
		rq.header.Set("X-OAuth-Scopes", "repo")
		rq.header.Set("X-Accepted-OAuth-Scopes", "repo")
	}
}
