package mirror

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// One fetch takes as long for one pull request as for a thousand. After a start of the bot a
// thousand may need planning, a few at a time. A caller that waits for its turn therefore announces
// the head that it will need, and the next fetch includes all announced heads.

const (
	maxAhead = 1000            // announced heads per fetch
	heldFor  = 2 * time.Minute // how long such a head counts as fetched
)

// ahead holds the announced heads. Store.mu guards it.
type ahead struct {
	soon  map[string]string    // refs that are not fetched yet, by head
	there map[string]time.Time // fetched heads, with the start of their fetch
}

// Soon announces that a caller will need a head, which ref points to.
func (s *Store) Soon(repo, head, ref string) {
	if !ident.IsRepository(repo) {
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

// FetchHead is Fetch for a caller that needs one head. If a recent fetch already included the
// announced head, FetchHead does not fetch again. The base branch is then as old as that fetch; a
// caller that learns that the base has moved must fetch anyway. The next call for the same head
// fetches again.
func (s *Store) FetchHead(ctx context.Context, repo, head string, refs ...string) (*checkout.Repo, error) {
	if !ident.IsRepository(repo) {
		return s.Fetch(ctx, repo, refs...) // it returns the error
	}
	m := s.mirrored(repo)
	if s.brought(m, head) {
		return s.open(m), nil
	}
	defer s.brought(m, head) // its own fetch included the head
	return s.Fetch(ctx, repo, refs...)
}

// brought reports, once, whether a recent fetch included an announced head. It removes the
// announcement.
func (s *Store) brought(m *mirrored, head string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	began, ok := m.ahead.there[head]
	delete(m.ahead.there, head)
	delete(m.ahead.soon, head)
	return ok && time.Since(began) < heldFor
}

// fetchAlong fetches refs and the announced refs. If that fails, it fetches only refs, so
// announcements do no harm.
func (s *Store) fetchAlong(ctx context.Context, m *mirrored, repo string, refs []string) error {
	s.mu.Lock()
	began, along := time.Now(), m.ahead.soon
	if along != nil { // even if it is empty: other callers write to the new map from now on
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
