package ledger

import (
	"context"
	"fmt"
	"sync"
)

// progress is how far the ledger is, for those who wait.
type progress struct {
	mu       sync.Mutex
	seq      uint64
	caughtUp bool
	err      error
	changed  chan struct{} // closed at every change
}

func (p *progress) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *progress) reach(seq uint64) { p.update(func() { p.seq = seq }) }
func (p *progress) fail(err error)   { p.update(func() { p.err = err }) }

func (p *progress) wait(ctx context.Context, there func() bool) error {
	for {
		p.mu.Lock()
		ok, err, changed := there(), p.err, p.changed
		p.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return fmt.Errorf("waiting for the ledger, which has stopped: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the ledger: %w", context.Cause(ctx))
		}
	}
}

// CaughtUp waits until Follow has brought in all events that were there when it
// began, and again after damage was found.
func (l *Ledger) CaughtUp(ctx context.Context) error {
	return l.progress.wait(ctx, func() bool { return l.progress.caughtUp })
}

// WaitFor waits until the ledger has the event of that sequence.
func (l *Ledger) WaitFor(ctx context.Context, seq uint64) error {
	return l.progress.wait(ctx, func() bool { return l.progress.seq >= seq })
}

// Seq is the sequence of the last event that the ledger has, 0 before Follow has
// looked.
func (l *Ledger) Seq() uint64 {
	l.progress.mu.Lock()
	defer l.progress.mu.Unlock()
	return l.progress.seq
}
