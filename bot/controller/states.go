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

// states reads and writes changes in the journal. What was used last is kept, and a
// write that the journal refuses makes it read again.
type states struct {
	journal *journal.Journal
	now     func() time.Time
	name    func(repo int64) string // what a repository is called now; empty where that is not known

	reading chan struct{} // held by whoever reads: at a start thousands want to
	mu      sync.Mutex
	entries *lru.Cache[change.ID, *entry]
	heads   *lru.Cache[head, []change.ID] // pull requests that were seen lately
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

// maxStates bounds what is kept; what is dropped is read again. Everything open should
// fit: a reconciliation looks at all of it.
const (
	maxStates  = 4096
	readAtOnce = 16
)

func newStates(j *journal.Journal, now func() time.Time, name func(int64) string) *states {
	return &states{journal: j, now: now, name: name, reading: make(chan struct{}, readAtOnce), entries: newLRU[change.ID, *entry](maxStates), heads: newLRU[head, []change.ID](maxStates)}
}

// newLRU is a cache of a size that is no mistake.
func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return c
}

// clear drops what is kept: it is read again.
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
		s.entries.Add(id, e) // whoever holds one that this pushes out goes on with it; the journal refuses what is stale
	}
	return e
}

// load is the change as it is; one that nobody has heard of is empty.
func (s *states) load(ctx context.Context, id change.ID) (*change.State, error) {
	e := s.entry(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.fill(ctx, e, id); err != nil {
		return nil, err
	}
	return s.copy(e.state), nil
}

// copy is a state for whoever works by it. What is stored has the repository's name of
// then.
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
		event, err := change.Decode(stored.Kind, stored.Data)
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

// update writes what decide makes of the change as it is, and returns the change
// after that. A nil event writes nothing. decide is asked again when somebody
// else was faster.
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
	if !ok || id.Kind != change.Pull {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := head{id.Repo, seen.Head}
	if ids, _ := s.heads.Get(at); !slices.Contains(ids, id) {
		s.heads.Add(at, append(slices.Clone(ids), id))
	}
}

// withHead is the pull requests that were seen to have a head since the start.
func (s *states) withHead(repo int64, sha string) []change.ID {
	ids, _ := s.heads.Get(head{repo, sha})
	return ids
}
