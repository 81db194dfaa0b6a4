package mirror

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/checkout"
)

// A fetch takes as long for one pull request as for a thousand. After a start a thousand
// want to be planned, a few at a time: so whoever waits for its turn says what it will
// ask for, and the next fetch, whoever it is for, brings that along.

const (
	maxAhead = 1000            // heads that one fetch brings along
	heldFor  = 2 * time.Minute // how long a head that was brought along need not be fetched
)

// ahead is what was asked for ahead of time. Store.mu guards it.
type ahead struct {
	soon  map[string]string    // refs that nobody has fetched yet, by head
	there map[string]time.Time // heads that were brought along, and when their fetch began
}

// Soon says that somebody is going to ask for a head which a ref leads to.
func (s *Store) Soon(repo, head, ref string) {
	if !strict.IsRepository(repo) {
		return
	}
	m := s.mirrored(repo)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.ahead.soon == nil {
		m.ahead.soon, m.ahead.there = map[string]string{}, map[string]time.Time{}
	}
	if _, there := m.ahead.there[head]; !there && len(m.ahead.soon) < maxAhead {
		m.ahead.soon[head] = ref
	}
}

// FetchHead is Fetch for whoever looks at one head. Where a fetch has brought it along a moment
// ago, that was it, and the base branch is as it was then: whoever hears that it
// has moved since fetches anyway. The next look at the same head fetches again.
func (s *Store) FetchHead(ctx context.Context, repo, head string, refs ...string) (*checkout.Repo, error) {
	if !strict.IsRepository(repo) {
		return s.Fetch(ctx, repo, refs...) // which says so
	}
	m := s.mirrored(repo)
	if s.brought(m, head) {
		return m.repo.Again(), nil
	}
	defer s.brought(m, head) // by its own fetch
	return s.Fetch(ctx, repo, refs...)
}

// brought tells, once, whether a head was brought along lately. Nobody brings it for this
// caller any more.
func (s *Store) brought(m *mirrored, head string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	began, ok := m.ahead.there[head]
	delete(m.ahead.there, head)
	delete(m.ahead.soon, head)
	return ok && time.Since(began) < heldFor
}

// fetchAlong fetches refs, and what is asked for ahead of time. That spoils nothing: where it
// fails, the refs are fetched alone.
func (s *Store) fetchAlong(ctx context.Context, m *mirrored, repo string, refs []string) error {
	s.mu.Lock()
	began, along := time.Now(), m.ahead.soon
	if along != nil { // an empty one too: others write into theirs from now on
		m.ahead.soon = map[string]string{}
	}
	s.mu.Unlock()
	all := slices.AppendSeq(slices.Clone(refs), maps.Values(along))
	err := s.fetch(ctx, repo, compacted(all))
	if err != nil && len(along) > 0 && ctx.Err() == nil {
		return s.fetch(ctx, repo, compacted(refs))
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for head, at := range m.ahead.there {
		if began.Sub(at) >= heldFor {
			delete(m.ahead.there, head)
		}
	}
	for head := range along {
		m.ahead.there[head] = began
	}
	return nil
}

func compacted(refs []string) []string {
	slices.Sort(refs)
	return slices.Compact(refs)
}
