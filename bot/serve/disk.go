package serve

import (
	"context"
	"time"
)

// watchEvery is how often the bot looks whether its journal takes writes, whoever else asks.
const watchEvery = 2 * time.Second

// watchJournal tries the journal, and ends the bot if only a restart repairs it: then whatever supervises the bot starts it
// again. It logs when writes begin to fail and when they succeed again.
func (s *Server) watchJournal(ctx context.Context) error {
	for failing := false; ; {
		err := s.Journal.Writable(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err != nil && !failing:
			s.log.Error("the journal takes no writes; webhooks are refused, and GitHub is asked for them later (is its disk full?)", "err", err)
		case err == nil && failing:
			s.log.Info("the journal takes writes again")
		}
		failing = err != nil
		if err := s.Journal.Stuck(); err != nil {
			return err
		}
		if !sleep(ctx, watchEvery) {
			return nil
		}
	}
}

// sleep reports whether the time has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
