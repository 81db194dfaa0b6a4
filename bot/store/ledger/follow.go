package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// Journal is where the events come from.
type Journal interface {
	Replay(ctx context.Context, after uint64, apply func(journal.Event) error) (uint64, error)
	Follow(ctx context.Context, after uint64, apply func(journal.Event) error) error
}

const (
	batchEvents = 2000
	batchTime   = 200 * time.Millisecond
	fullPause   = time.Second // before the next attempt to write to a full disk
	maxRebuilds = 3           // of one Follow; a disk that damages every file is not cured by another
)

// Follow brings in the events that the ledger does not have and goes on with new
// ones as they are written, until ctx ends (nil) or the journal fails; then it may
// be called again. Only one may be under way. A full disk ends nothing: the ledger
// is behind until there is space, and nobody who only needs the journal notices.
func (l *Ledger) Follow(ctx context.Context, j Journal) error {
	if !l.following.TryLock() {
		return errors.New("the ledger is following a journal already")
	}
	defer l.following.Unlock()
	for rebuilds, full := 0, false; ; {
		err := l.follow(ctx, j)
		l.cache.Purge() // it may be ahead of the file
		if ctx.Err() != nil {
			return nil
		}
		if unwritable(err) {
			if !full {
				l.log.Error("the ledger cannot be written; it is brought up to date when its disk has space again", "file", l.file, "err", err)
			}
			full = true
			l.progress.update(func() { l.progress.caughtUp = false })
			select {
			case <-time.After(fullPause):
			case <-ctx.Done():
			}
			continue
		}
		full = false
		if rebuilds < maxRebuilds && (damaged(err) || l.lossy && errors.Is(err, ErrLost)) {
			l.store.Load().close()
			var s *store
			if s, err = l.startOver(ctx, err); err == nil {
				l.store.Store(s)
				select {
				case <-l.broken: // it was said of the old file
				default:
				}
				rebuilds++
				continue
			}
		}
		err = fmt.Errorf("keeping the ledger %s: %w", l.file, err)
		l.progress.fail(err)
		return err
	}
}

func (l *Ledger) follow(ctx context.Context, j Journal) error {
	seq, err := l.resume(ctx, j)
	if err != nil {
		return err
	}
	l.progress.update(func() { l.progress.seq, l.progress.caughtUp, l.progress.err = seq, false, nil })

	b := l.newBatch()
	seq, err = j.Replay(ctx, seq, func(e journal.Event) error {
		if err := b.add(ctx, e); err != nil {
			return err
		}
		if b.full(l.now()) {
			return b.flush(ctx)
		}
		return nil
	})
	if flushErr := b.flush(ctx); flushErr != nil {
		return errors.Join(err, flushErr)
	}
	if err != nil {
		return err
	}
	l.progress.update(func() { l.progress.caughtUp = true })
	return l.live(ctx, j, seq)
}

// Verify tells whether the ledger can follow this journal. It is ErrLost where the journal lacks the event that the ledger had
// last: it was truncated, restored from an older backup, or wiped. With Options.AcceptLoss it can nevertheless.
func (l *Ledger) Verify(ctx context.Context, j Journal) error {
	_, err := l.resume(ctx, j)
	return err
}

// Empty reports whether the ledger has no event yet.
func (l *Ledger) Empty(ctx context.Context) (bool, error) {
	seq, _, err := l.store.Load().progress(ctx)
	return seq == 0, err
}

// resume is the sequence to go on from.
func (l *Ledger) resume(ctx context.Context, j Journal) (uint64, error) {
	seq, print, err := l.store.Load().progress(ctx)
	if err != nil || seq == 0 {
		return 0, err
	}
	var first *journal.Event
	_, err = j.Replay(ctx, seq-1, func(e journal.Event) error {
		first = &e
		return errors.New("one is enough")
	})
	switch {
	case first == nil && err != nil:
		return 0, err
	case first == nil:
		return 0, fmt.Errorf("%w: the ledger has events up to %d, and the journal ends before", ErrLost, seq)
	case first.Seq != seq || printOf(*first) != print:
		return 0, fmt.Errorf("%w: event %d is another one in the journal", ErrLost, seq)
	}
	return seq, nil
}

// printOf tells an event from any other with its sequence.
func printOf(e journal.Event) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %d ", e.Run, e.Kind, e.At.UnixNano())
	h.Write(e.Data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// live writes events as they come. Those that arrive while a transaction is under
// way go together in the next one; none waits for company.
func (l *Ledger) live(ctx context.Context, j Journal, after uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	events, ended := make(chan journal.Event, 256), make(chan error, 1)
	go func() {
		defer close(events)
		ended <- j.Follow(ctx, after, func(e journal.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() { // the journal may be closed as soon as this returns
		cancel()
		for range events {
		}
	}()
	for {
		select {
		case <-l.broken:
			return errBroken
		case e, ok := <-events:
			if !ok {
				return errors.Join(errors.New("the journal gives no more events"), <-ended)
			}
			if err := l.take(ctx, e, events); err != nil {
				return err
			}
		}
	}
}

// take writes the first event and those that wait behind it.
func (l *Ledger) take(ctx context.Context, e journal.Event, more <-chan journal.Event) error {
	b := l.newBatch()
	for ok := true; ok; {
		if err := b.add(ctx, e); err != nil {
			return errors.Join(err, b.flush(ctx))
		}
		if b.full(l.now()) {
			break
		}
		select {
		case e, ok = <-more:
		default:
			ok = false
		}
	}
	return b.flush(ctx)
}
