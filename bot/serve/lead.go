package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Of several bots on one NATS server one leads. All take webhooks and show pages; jobs are
// handed out, changes worked on and verdicts published by the one that leads.

// role says for people which one this is; "" where it is alone.
func (s *Server) role(ctx context.Context) string {
	if len(s.opt.NATS) == 0 {
		return ""
	}
	other, _ := s.Journal.Leader()
	switch {
	case s.Journal.Leads():
		c, err := s.Ledger.Counts(ctx)
		if err != nil {
			return "leads"
		}
		return fmt.Sprintf("leader: open changes %d, with work left %d", c.Open, c.Unsettled)
	case other == "":
		return "standby: there is no leader yet"
	}
	return "standby: a different bot is the leader"
}

// leading refuses runners and agents where another bot has the jobs. They try again, there or at
// another of their addresses. Where that bot has said how it is reached, those that this one knows are passed on to it. knows is
// nil for runners on this host, of which that bot may know nothing.
func (s *Server) leading(h http.Handler, knows func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Journal.Leads() {
			_, address := s.Journal.Leader()
			if to, err := url.Parse(address); knows != nil && err == nil && to.Host != "" && r.Header.Get(passedHeader) == "" && knows(r) {
				s.pass(w, r, address, to)
				return
			}
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this bot is on standby and a different bot is the leader (try again; give a runner the addresses of all bots)", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// passedHeader marks what was passed on once: two bots that take each other for the one that leads must not go on for ever.
const passedHeader = "Kernelgate-Passed-On"

// pass hands a request of a runner or an agent to the bot that leads. How long it may take is for the two of them.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, address string, to *url.URL) {
	c := http.NewResponseController(w)
	_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), passTime)
	defer cancel()
	go s.whileLedFrom(ctx, address, cancel)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Header.Set(passedHeader, "1")
		},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			s.log.Debug("could not forward the request of a runner to the leader", "error", err)
			http.Error(w, "the leader does not answer; try again", http.StatusServiceUnavailable)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}

// whileLedFrom calls end when the bot at that address does not lead any more. A host that is gone closes no connection, so
// the request would wait until passTime is over.
func (s *Server) whileLedFrom(ctx context.Context, address string, end func()) {
	look := time.NewTicker(lookForLeader)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if _, now := s.Journal.Leader(); now != address {
			end()
			return
		}
	}
}

// lookForLeader is short beside the time that a new leader needs to begin.
const lookForLeader = 500 * time.Millisecond

// passTime is the longest that a request of a runner takes.
const passTime = 30 * time.Minute

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
		return errors.Join(fmt.Errorf("another server uses the data folder %s (give each bot a separate folder: data): %w", s.opt.Data, err), f.Close())
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
