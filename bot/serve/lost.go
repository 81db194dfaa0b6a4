package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// A journal that lacks events makes a bot judge and publish what it has judged and published before. So a bot does not start
// on such a journal, and ends if it finds the damage later. With --accept-loss, and after `kernelgate restore`, it goes on: it
// reads every open change again.

// openLedger opens the ledger, and compares it with the journal.
func (s *Server) openLedger(ctx context.Context) error {
	lost, err := s.checkEnd(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(s.opt.Data, ledgerFile)
	restored, pending, err := s.Journal.Restored(ctx)
	if err != nil {
		return err
	}
	accept := s.opt.AcceptLoss || restored.At.After(lastWritten(file)) // a ledger from before the restore
	if s.Ledger, err = ledger.Open(ctx, file, ledger.Options{AcceptLoss: accept, Log: s.log, Now: s.opt.Now}); err != nil {
		return err
	}
	err = s.Ledger.Verify(ctx, s.Journal)
	switch {
	case errors.Is(err, ledger.ErrLost) && !accept:
		// Not to be tried again by whatever restarts the bot: what it would do meanwhile cannot be taken back.
		return usage.Errorf("%s: %w (%s; the old ledger is kept under a different name)", file, err, afterLoss)
	case errors.Is(err, ledger.ErrLost):
		lost = lost || s.opt.AcceptLoss
	case err != nil:
		return fmt.Errorf("comparing the ledger with the journal: %w", err)
	}
	if !lost && len(s.opt.NATS) == 0 {
		if lost, err = s.copied(ctx); err != nil {
			return err
		}
	}
	if !lost || pending {
		return nil
	}
	return s.Journal.MarkRestored(ctx, journal.Restored{At: s.opt.Now().UTC()})
}

const afterLoss = "restore the journal from a backup: kernelgate restore; to continue without the lost events, start once with --accept-loss"

// checkEnd looks for a journal that was cut off, or accepts what it lacks. It reports whether a loss was accepted.
func (s *Server) checkEnd(ctx context.Context) (bool, error) {
	if s.opt.AcceptLoss {
		return s.Journal.AcceptLosses(ctx)
	}
	err := s.Journal.CheckEnd(ctx)
	if errors.Is(err, journal.ErrDamaged) {
		return false, damageMistake(err)
	}
	return false, err
}

func damageMistake(err error) error { return usage.Errorf("%w (%s)", err, afterLoss) }

// copied reports whether somebody has put an embedded journal in place without its ledger, such as a snapshot of a disk.
func (s *Server) copied(ctx context.Context) (bool, error) {
	empty, err := s.Ledger.Empty(ctx)
	if err != nil || !empty {
		return false, err
	}
	newest, err := s.Journal.LastSeq(ctx)
	return newest > 0, err
}

// lastWritten returns when a ledger was written last; zero if there is none.
func lastWritten(file string) (last time.Time) {
	for _, name := range []string{file, file + "-wal"} {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// verifyJournal reads all events once, beside everything else, and ends the bot if some are damaged.
func (s *Server) verifyJournal(ctx context.Context) error {
	begun := time.Now()
	for {
		report, err := s.Journal.Verify(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			if err := report.Err(); err != nil {
				return damageMistake(err)
			}
			s.counts.verified.Store(report.Events)
			s.log.Info("the journal is intact", "events", report.Events, "took", time.Since(begun).Round(time.Millisecond).String())
			<-ctx.Done()
			return nil
		}
		s.log.Warn("the journal cannot be verified yet; it is tried again", "err", err)
		if !sleep(ctx, time.Minute) {
			return nil
		}
	}
}
