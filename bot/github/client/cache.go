package client

import (
	"container/list"
	"net/http"
	"sync"
)

// cache asks GitHub whether an answer that it has is still right. GitHub counts no
// such request against the limit if it is, and the caller sees no difference.
type cache struct {
	*env
	next  http.RoundTripper
	store *store
}

func (c *cache) RoundTrip(rq *http.Request) (*http.Response, error) {
	if rq.Method != http.MethodGet || rq.Header.Get("If-None-Match") != "" || rq.Header.Get("Range") != "" {
		return c.next.RoundTrip(rq)
	}
	// Tokens change by the hour, identities do not; what one may see another may not.
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
		c.stats.cached(true)
		return kept.answer(rq, answer.Header), nil
	case answer.StatusCode == http.StatusOK && answer.Header.Get("ETag") != "":
		c.stats.cached(false)
		c.store.put(&entry{key: key, header: answer.Header.Clone(), body: peek(answer)})
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		c.store.drop(key)
	}
	return answer, nil
}

// An entry is an answer that may be asked about.
type entry struct {
	key    string
	header http.Header
	body   []byte
}

// overhead stands for the headers and the list's own needs.
const overhead = 2048

func (e *entry) size() int { return len(e.key) + len(e.body) + overhead }

// answer is the kept one. The pages around it may have changed although it has
// not, so a Link that came with the 304 is the right one.
func (e *entry) answer(rq *http.Request, fresh http.Header) *http.Response {
	header := e.header.Clone()
	if link := fresh.Values("Link"); len(link) > 0 {
		header["Link"] = link
	}
	out := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: rq}
	fill(out, e.body)
	return out
}

// A store keeps the entries that were used last, within a number of bytes.
type store struct {
	mu    sync.Mutex
	most  int
	bytes int
	order *list.List // of *entry, last used first
	byKey map[string]*list.Element
}

func newStore(most int) *store {
	return &store{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

func (s *store) get(key string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.byKey[key]
	if !ok {
		return nil
	}
	s.order.MoveToFront(at)
	return at.Value.(*entry)
}

// put keeps an entry, unless it would push most others out.
func (s *store) put(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(e.key)
	if e.size() > s.most/4 {
		return
	}
	s.byKey[e.key] = s.order.PushFront(e)
	s.bytes += e.size()
	for s.bytes > s.most {
		s.remove(s.order.Back().Value.(*entry).key)
	}
}

func (s *store) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

func (s *store) remove(key string) {
	if at, ok := s.byKey[key]; ok {
		s.bytes -= at.Value.(*entry).size()
		s.order.Remove(at)
		delete(s.byKey, key)
	}
}

func (s *store) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
