package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"
)

func get(t *testing.T, c *cache, url, accept string) *http.Response {
	t.Helper()
	rq, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	rq.Header.Set("Accept", accept)
	out, err := c.RoundTrip(rq)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// etags answers 304 to a client that already has the page.
func etags(rq *http.Request) (*http.Response, error) {
	tag := `W/"` + rq.URL.Path + rq.Header.Get("Accept") + `"`
	if rq.Header.Get("If-None-Match") == tag {
		return status(304, "ETag", tag, "Link", `<x?page=2>; rel="next"`)(rq)
	}
	return answer(200, "page "+rq.URL.Path+strings.Repeat(".", 1000), "ETag", tag, "X-Kept", "yes")(rq)
}

func TestCacheAnswersWhatIsUnchanged(t *testing.T) {
	t.Parallel()
	b, s := newBench(), newStore(1<<20)
	c := &cache{env: b.env, next: roundTripper(etags), store: s}
	fresh, kept := get(t, c, "https://x/a", "json"), get(t, c, "https://x/a", "json")
	if fresh.StatusCode != 200 || kept.StatusCode != 200 || string(peek(fresh)) != string(peek(kept)) || kept.Header.Get("X-Kept") != "yes" {
		t.Errorf("got %v and %v", fresh, kept)
	}
	if kept.Header.Get("Link") == "" {
		t.Error("the page after it is not to be found")
	}
	get(t, c, "https://x/a", "raw")
	other := &cache{env: &env{identity: "installation 2", stats: b.stats}, next: roundTripper(etags), store: s}
	get(t, other, "https://x/a", "json")
	if got := b.stats.read(); got.CacheHits != 1 || got.CacheMisses != 3 {
		t.Errorf("%d hits and %d misses, want 1 and 3: by identity, address and form", got.CacheHits, got.CacheMisses)
	}
}

// TestFullPageIsNotTrustedToBeTheLast covers a next page that appeared after the full page was
// cached.
func TestFullPageIsNotTrustedToBeTheLast(t *testing.T) {
	t.Parallel()
	asked := 0
	all, err := pages(func(at github.ListOptions) ([]int, *github.Response, error) {
		asked++
		if at.Page == 1 {
			return make([]int, perPage), &github.Response{}, nil
		}
		return []int{1}, &github.Response{}, nil
	})
	if err != nil || len(all) != perPage+1 || asked != 2 {
		t.Errorf("%d entries of %d pages, %v", len(all), asked, err)
	}
}

func TestCacheForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	there := true
	b, s := newBench(), newStore(1<<20)
	c := &cache{env: b.env, store: s, next: roundTripper(func(rq *http.Request) (*http.Response, error) {
		if there {
			return etags(rq)
		}
		return status(404)(rq)
	})}
	get(t, c, "https://x/a", "json")
	there = false
	if got := get(t, c, "https://x/a", "json"); got.StatusCode != 404 || s.size() != 0 {
		t.Errorf("got %d with %d bytes kept", got.StatusCode, s.size())
	}
}

func TestStoreKeepsToItsBytes(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	b, s := newBench(), newStore(most)
	c := &cache{env: b.env, next: roundTripper(etags), store: s}
	get(t, c, "https://x/first", "json")
	for i := range 100 {
		get(t, c, fmt.Sprintf("https://x/%d", i), "json")
		get(t, c, "https://x/first", "json")
		if s.size() > most {
			t.Fatalf("%d bytes are kept", s.size())
		}
	}
	if hits := b.stats.read().CacheHits; hits != 100 {
		t.Errorf("what is used most was kept %d times of 100", hits)
	}
	sum := 0
	for _, e := range s.kept.Values() {
		sum += e.size()
	}
	if s.size() < most/2 || s.size() != sum {
		t.Errorf("%d bytes, and %d in the entries", s.size(), sum)
	}
	s.put(&entry{key: "huge", header: http.Header{}, body: make([]byte, most/2)})
	if s.get("huge") != nil || s.size() == 0 {
		t.Error("one answer pushed out all others")
	}
	none := &cache{env: b.env, next: roundTripper(etags), store: newStore(-1)}
	get(t, none, "https://x/a", "json")
	if none.store.size() != 0 {
		t.Error("a store of no bytes keeps some")
	}
}
