// Package retention finds the artifacts that a bot does not need any more: evidence, verdicts and logs of runs that ended
// long ago, reports of searches, and old artifacts that no run refers to. It deletes no event, so verdicts, history and the counts of attempts stay. It
// decides nothing about a change.
package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// A Plan says what to delete.
type Plan struct {
	Usage  []journal.Usage
	Delete []journal.Blob // oldest first
	Kept   []journal.Blob
	InUse  int // how many of Kept are old, but an open change or a newer run refers to them
}

// Bytes returns the size of blobs.
func Bytes(blobs []journal.Blob) (n uint64) {
	for _, b := range blobs {
		n += b.Bytes
	}
	return n
}

// Make finds the artifacts that were written before a time. It leaves out the artifacts of open changes, of unfinished
// runs, and of runs that ended since then. Reports of searches are also in comments, so it does not leave them out. It reads
// all events into a temporary ledger, so it does not touch the ledger of a bot.
func Make(ctx context.Context, j *journal.Journal, before time.Time) (*Plan, error) {
	var p Plan
	var err error
	if p.Usage, err = j.Usage(ctx); err != nil {
		return nil, err
	}
	// The artifacts are listed before the runs are read: an artifact of a run that ends in between is not in the list.
	blobs, err := j.Artifacts.List(ctx)
	if err != nil {
		return nil, err
	}
	used, err := inUse(ctx, j, before)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(blobs, func(a, b journal.Blob) int {
		return cmp.Or(a.Written.Compare(b.Written), cmp.Compare(a.Name, b.Name))
	})
	for _, b := range blobs {
		switch {
		case !b.Written.Before(before):
			p.Kept = append(p.Kept, b)
		case used[b.Name] || used[fleet.ArtifactJob(b.Name)]:
			p.Kept = append(p.Kept, b)
			p.InUse++
		default:
			p.Delete = append(p.Delete, b)
		}
	}
	return &p, nil
}

// inUse returns the names of artifacts that must stay, and the jobs whose artifacts must stay.
func inUse(ctx context.Context, j *journal.Journal, before time.Time) (_ map[string]bool, err error) {
	dir, err := os.MkdirTemp("", "kernelgate-gc-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a ledger: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := ledger.Open(ctx, filepath.Join(dir, "ledger.db"), ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	follow, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Follow(follow, j) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if err := l.CaughtUp(ctx); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for next := int64(0); ; {
		page, err := l.Runs(ctx, ledger.RunFilter{Before: next})
		if err != nil {
			return nil, fmt.Errorf("asking the ledger: %w", err)
		}
		if len(page) == 0 {
			return used, nil
		}
		for _, row := range page {
			next = row.N
			if row.Open || row.Ended.IsZero() || !row.Ended.Before(before) {
				used[row.Evidence], used[row.Verdict], used[row.Job] = true, true, true
			}
		}
	}
}

// Apply deletes the artifacts of the plan, except those that were written again since.
func (p *Plan) Apply(ctx context.Context, j *journal.Journal) (deleted []journal.Blob, err error) {
	for _, b := range p.Delete {
		now, err := j.Artifacts.Stat(ctx, b.Name)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return deleted, err
		}
		if !now.Written.Equal(b.Written) {
			continue
		}
		if err := j.Artifacts.Delete(ctx, b.Name); err != nil {
			return deleted, err
		}
		deleted = append(deleted, b)
	}
	return deleted, nil
}
