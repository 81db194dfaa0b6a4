package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// states reads and writes changes in the journal. It caches the states that were used last; a write
// that the journal refuses makes it read the state again.
type states struct {
	journal *journal.Journal
	now     func() time.Time
	name    func(repo int64) string // the current name of a repository; "" if unknown

	reading chan struct{} // held by readers: at a start there are thousands
	mu      sync.Mutex
	entries *lru.Cache[change.ID, *entry]
	heads   *lru.Cache[head, []change.ID] // pull requests and merge groups that were seen recently
}

// A head is a commit of a repository.
type head struct {
	repo int64
	sha  string
}

type entry struct {
	mu    sync.Mutex
	state *change.State
}

// maxStates bounds the cache. All open changes should fit, because a resync reads all of them.
const (
	maxStates  = 4096
	readAtOnce = 16
)

func newStates(j *journal.Journal, now func() time.Time, name func(int64) string) *states {
	return &states{journal: j, now: now, name: name, reading: make(chan struct{}, readAtOnce), entries: newLRU[change.ID, *entry](maxStates), heads: newLRU[head, []change.ID](maxStates)}
}

// newLRU makes a cache. It panics if the size is below 1, which is a mistake in this program.
func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return c
}

// clear drops all cached states.
func (s *states) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries.Purge()
	s.heads.Purge()
}

func (s *states) entry(id change.ID) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(id)
	if !ok {
		e = &entry{}
		s.entries.Add(id, e) // a holder of an evicted entry continues with it; the journal refuses stale writes
	}
	return e
}

// load returns the current state of a change; a change without events has an empty state.
func (s *states) load(ctx context.Context, id change.ID) (*change.State, error) {
	e := s.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.fill(ctx, e, id); err != nil {
		return nil, err
	}
	return s.copy(e.state), nil
}

// copy returns a state for a worker. The stored state may have an old name of the repository.
func (s *states) copy(state *change.State) *change.State {
	c := state.Clone()
	if name := s.name(c.ID.Repo); name != "" && c.Seq > 0 {
		c.Facts.Repo = name
	}
	return c
}

func (s *states) fill(ctx context.Context, e *entry, id change.ID) error {
	if e.state != nil {
		return nil
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	state := change.New(id)
	_, err := s.journal.ReplayRun(ctx, id.String(), func(stored journal.Event) error {
		event, err := change.DecodeFrom(stored.Writer, stored.Kind, stored.Data)
		if err == nil {
			state.Apply(stored.Seq, stored.At, event)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", id, err)
	}
	e.state = state
	return nil
}

// update writes the event that decide returns for the current state, and returns the new state. A
// nil event writes nothing. If another writer was faster, decide is called again.
func (s *states) update(ctx context.Context, id change.ID, decide func(*change.State) (change.Event, error)) (*change.State, error) {
	e := s.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if err := s.fill(ctx, e, id); err != nil {
			return nil, err
		}
		event, err := decide(e.state.Clone())
		if err != nil {
			return nil, err
		}
		if event == nil {
			return s.copy(e.state), nil
		}
		at := s.now().UTC().Round(0)
		seq, err := s.journal.AppendAt(ctx, at, id.String(), e.state.Seq, change.KindOf(event), event)
		if errors.Is(err, journal.ErrConflict) {
			e.state = nil
			continue
		}
		if err != nil {
			e.state = nil // it may have been written
			return nil, fmt.Errorf("writing %s: %w", id, err)
		}
		e.state.Apply(seq, at, event)
		s.recordHead(id, event)
		return s.copy(e.state), nil
	}
}

func (s *states) recordHead(id change.ID, e change.Event) {
	seen, ok := e.(change.Seen)
	if !ok || id.Kind.OnMain() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := head{id.Repo, seen.Head}
	if ids, _ := s.heads.Get(at); !slices.Contains(ids, id) {
		s.heads.Add(at, append(slices.Clone(ids), id))
	}
}

// withHead returns the pull requests and merge groups that had this head at any time since the start.
func (s *states) withHead(repo int64, sha string) []change.ID {
	ids, _ := s.heads.Get(head{repo, sha})
	return ids
}
