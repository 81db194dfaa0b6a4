package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/kernelgate/kernelgate/bot/change"
)

var (
	// errNotFound says that the ledger has no such change.
	errNotFound = errors.New("not in the ledger")
	// errClosed says that the ledger was closed.
	errClosed = errors.New("the ledger is closed")
	// ErrLost says that the journal has lost events which the ledger was made from, or is another journal.
	ErrLost = errors.New("the journal lacks events that the ledger has")
)

// Options may all be left out.
type Options struct {
	// AcceptLoss has a ledger rebuilt whose journal lacks events that it has. The old file is kept under another name.
	AcceptLoss bool
	Log        *slog.Logger
	Now        func() time.Time
}

// cached is how many states are kept in memory. A change's events come close
// together, so few are enough.
const cached = 512

// A cache keeps the states that were used last. It belongs to the follower alone.
type cache = lru.LRU[change.ID, *change.State]

func newCache(size int) *cache {
	c, err := lru.NewLRU[change.ID, *change.State](size, nil)
	if err != nil {
		panic(err) // the size is a constant, and positive
	}
	return c
}

// A Ledger is an open ledger. Its methods may be called from many goroutines.
type Ledger struct {
	file      string
	log       *slog.Logger
	now       func() time.Time
	lossy     bool                  // as Options.AcceptLoss
	store     atomic.Pointer[store] // replaced when the file turns out to be damaged
	following sync.Mutex
	broken    chan struct{} // a reader met damage
	cache     *cache
	progress  progress
}

// Open opens the ledger in file, and makes it where there is none. What cannot be
// used as one is put out of the way first: Follow brings the rows back.
func Open(ctx context.Context, file string, o Options) (*Ledger, error) {
	l := &Ledger{
		file: file, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), now: o.Now, lossy: o.AcceptLoss,
		broken: make(chan struct{}, 1), cache: newCache(cached), progress: progress{changed: make(chan struct{})},
	}
	if l.now == nil {
		l.now = time.Now
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("making the ledger's folder: %w", err)
	}
	s, err := openStore(ctx, file)
	if err != nil && ctx.Err() == nil && !busy(err) {
		s, err = l.startOver(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the ledger %s: %w", file, err)
	}
	l.store.Store(s)
	return l, nil
}

// startOver puts a file that is of no use out of the way and makes a new one.
func (l *Ledger) startOver(ctx context.Context, why error) (*store, error) {
	if errors.Is(why, ErrLost) {
		aside, err := setAside(l.file, ".lost-"+l.now().UTC().Format("20060102T150405Z"))
		if err != nil {
			return nil, errors.Join(why, err)
		}
		l.log.Warn("the ledger is rebuilt from a journal that has lost events; the old file has what they led to", "file", l.file, "error", why, "moved_to", aside)
	} else if errors.Is(why, errOtherVersion) {
		l.log.Info("the ledger has a different version and is rebuilt from the journal", "file", l.file)
		if err := removeAll(l.file); err != nil {
			return nil, err
		}
	} else {
		aside, err := setAside(l.file, ".bad")
		if err != nil {
			return nil, errors.Join(why, err)
		}
		l.log.Warn("the ledger cannot be used and is rebuilt from the journal; the old file may be deleted",
			"file", l.file, "error", why, "moved_to", aside)
	}
	return openStore(ctx, l.file)
}

// Close closes the file. End Follow first.
func (l *Ledger) Close() error {
	l.progress.fail(errClosed)
	if err := l.store.Load().close(); err != nil {
		return fmt.Errorf("closing the ledger %s: %w", l.file, err)
	}
	return nil
}
