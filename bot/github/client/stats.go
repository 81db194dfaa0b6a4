package client

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Stats holds counters since the start of the client, and current gauges.
type Stats struct {
	Requests map[Request]int64 // attempts that were sent
	Retries  int64             // attempts that repeated an earlier one after a fault
	Waits    map[Reason]int64
	Waited   map[Reason]time.Duration

	CacheHits, CacheMisses int64
	CacheBytes             int
	Remaining              map[string]int // of the primary limit, by identity
	// Wrote is when GitHub last took a write other than a request for a token.
	Wrote time.Time
	// Shut holds the identities that an IP allow list refuses: "installation 5" or, with a token,
	// "token in olga".
	Shut map[string]bool
}

// A Request is a kind of attempt and how it ended.
type Request struct {
	Class  Class
	Ending Ending
}

// A Class says whether a request reads or writes.
type Class string

// An Ending says how an attempt ended.
type Ending string

// The classes and endings.
const (
	Read  Class = "read"
	Write Class = "write"

	OK        Ending = "ok"
	Unchanged Ending = "unchanged" // 304
	Refused   Ending = "refused"   // 4xx
	Failed    Ending = "failed"    // 5xx
	Lost      Ending = "lost"      // no answer
)

func ending(answer *http.Response) Ending {
	switch {
	case answer.StatusCode == http.StatusNotModified:
		return Unchanged
	case answer.StatusCode >= 500:
		return Failed
	case answer.StatusCode >= 400:
		return Refused
	}
	return OK
}

type counters struct {
	mu sync.Mutex
	s  Stats
}

func newCounters() *counters {
	return &counters{s: Stats{Requests: map[Request]int64{}, Waits: map[Reason]int64{}, Waited: map[Reason]time.Duration{},
		Remaining: map[string]int{}, Shut: map[string]bool{}}}
}

func (c *counters) update(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) request(rq *http.Request, o Ending) {
	class := Read
	if writes(rq) {
		class = Write
	}
	c.update(func(s *Stats) {
		s.Requests[Request{class, o}]++
		if class == Write && o == OK && !strings.HasSuffix(rq.URL.Path, "/access_tokens") {
			s.Wrote = time.Now()
		}
	})
}

// shut records whether an IP allow list refuses an identity.
func (c *counters) shut(who string, yes bool) {
	c.update(func(s *Stats) {
		if delete(s.Shut, who); yes {
			s.Shut[who] = true
		}
	})
}

func (c *counters) read() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.s
	out.Requests, out.Waits, out.Waited = maps.Clone(out.Requests), maps.Clone(out.Waits), maps.Clone(out.Waited)
	out.Remaining, out.Shut = maps.Clone(out.Remaining), maps.Clone(out.Shut)
	return out
}
