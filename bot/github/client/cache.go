package client

import (
	"math"
	"net/http"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache sends a conditional request for an answer that it has stored. If the answer is unchanged,
// GitHub does not count the request against the rate limit. The caller sees no difference.
type cache struct {
	*env
	next  http.RoundTripper
	store *store
}

func (c *cache) RoundTrip(rq *http.Request) (*http.Response, error) {
	if rq.Method != http.MethodGet || rq.Header.Get("If-None-Match") != "" || rq.Header.Get("Range") != "" {
		return c.next.RoundTrip(rq)
	}
	// The key names the identity, not the token, because tokens change every hour. One identity
	// must not see the answers of another.
	key := c.identity + "\n" + rq.URL.String() + "\n" + rq.Header.Get("Accept")
	kept := c.store.get(key)
	asked := rq
	if kept != nil {
		asked = rq.Clone(rq.Context())
		asked.Header.Set("If-None-Match", kept.header.Get("ETag"))
	}
	answer, err := c.next.RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	switch {
	case answer.StatusCode == http.StatusNotModified && kept != nil:
		c.stats.update(func(s *Stats) { s.CacheHits++ })
		return kept.answer(rq, answer.Header), nil
	case answer.StatusCode == http.StatusOK && answer.Header.Get("ETag") != "":
		c.stats.update(func(s *Stats) { s.CacheMisses++ })
		c.store.put(&entry{key: key, header: answer.Header.Clone(), body: peek(answer)})
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		c.store.drop(key)
	}
	return answer, nil
}

// An entry is a stored answer for conditional requests.
type entry struct {
	key    string
	header http.Header
	body   []byte
}

// overhead estimates the memory for the headers and the list.
const overhead = 2048

func (e *entry) size() int { return len(e.key) + len(e.body) + overhead }

// answer returns the stored answer. The list may have grown after this page although the page is
// unchanged, so a Link header of the 304 replaces the stored one.
func (e *entry) answer(rq *http.Request, fresh http.Header) *http.Response {
	header := e.header.Clone()
	if link := fresh.Values("Link"); len(link) > 0 {
		header["Link"] = link
	}
	out := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: rq}
	fill(out, e.body)
	return out
}

// A store keeps the most recently used entries, up to a number of bytes.
type store struct {
	mu    sync.Mutex
	most  int
	bytes int
	kept  *lru.LRU[string, *entry]
}

func newStore(most int) *store {
	s := &store{most: most}
	kept, err := lru.NewLRU(math.MaxInt, func(_ string, e *entry) { s.bytes -= e.size() })
	if err != nil {
		panic(err) // the number of entries is a positive constant
	}
	s.kept = kept
	return s
}

func (s *store) get(key string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, _ := s.kept.Get(key)
	return e
}

// put stores an entry, unless it takes more than a quarter of the store.
func (s *store) put(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(e.key)
	if e.size() > s.most/4 {
		return
	}
	s.kept.Add(e.key, e)
	s.bytes += e.size()
	for s.bytes > s.most {
		s.kept.RemoveOldest()
	}
}

func (s *store) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Remove(key)
}

func (s *store) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
