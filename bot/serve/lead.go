package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// Of several bots on one NATS server one leads. All take webhooks and show pages; jobs are
// handed out, changes worked on and verdicts published by the one that leads.

// role says for people which one this is; "" where it is alone.
func (s *Server) role(ctx context.Context) string {
	if len(s.opt.NATS) == 0 {
		return ""
	}
	leads, other := s.Journal.Leads()
	switch {
	case leads:
		c, err := s.Ledger.Counts(ctx)
		if err != nil {
			return "leads"
		}
		return fmt.Sprintf("leads: changes open %d, with something left to do %d", c.Open, c.Unsettled)
	case other == "":
		return "stands by, and nobody leads yet"
	}
	return "stands by: another bot leads"
}

// leading refuses runners where another bot has the jobs. They try again, there or at
// another of their addresses.
func (s *Server) leading(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leads, _ := s.Journal.Leads(); !leads {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this bot stands by, and another one has the jobs (give the runner the addresses of all bots)", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// lockData keeps a second server out of the data folder. A journal in it does that by itself; where the journal is elsewhere,
// servers may share that and nothing else.
func (s *Server) lockData() error {
	if len(s.opt.NATS) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.opt.Data, "LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another server uses the data folder %s (give each bot one of its own: data): %w", s.opt.Data, err), f.Close())
	}
	s.lock = f
	return nil
}

// unlockData leaves the file, as the journal does with its own.
func (s *Server) unlockData() error {
	if s.lock == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN), s.lock.Close())
}
