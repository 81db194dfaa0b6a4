package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// readiness is what is known of GitHub: whether it accepts the credentials, or why
// not.
type readiness struct {
	mu      sync.Mutex
	login   string
	refusal string
	silent  time.Time // since when it does not answer, though it accepted the bot before
}

func (r *readiness) known() (login, refusal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.login, r.refusal
}

func (r *readiness) silentSince() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silent
}

// introduce asks GitHub who the bot is, until it is told, and then whether that still
// holds: a key may be revoked and an App deleted while the bot runs.
func (s *Server) introduce(ctx context.Context) {
	for pause := time.Second; ; pause = min(2*pause, askEvery) {
		login, err := s.Client.Me(ctx)
		s.ready.mu.Lock()
		s.ready.login = login
		if err != nil {
			s.ready.refusal = reason(err)
		}
		s.ready.mu.Unlock()
		if err == nil {
			s.log.Info("GitHub accepts the bot", "login", login, "checks", s.Client.UsesChecks())
			s.stayKnown(ctx, login)
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.Error("GitHub does not accept the bot yet", "err", err, "again_in", pause.String())
		if !sleep(ctx, pause) {
			return
		}
	}
}

// How often GitHub is asked whether it accepts the bot, and how soon after a refusal. Two refusals make the bot unready, so
// /readyz is wrong about the credentials for less than a minute.
const (
	askEvery = 30 * time.Second
	askAgain = 10 * time.Second
)

// askIn returns when GitHub is asked next, after so many refusals in a row.
func askIn(every time.Duration, refusals int) time.Duration {
	if refusals > 0 {
		return min(every, askAgain)
	}
	return every
}

// stayKnown asks GitHub again and again, and logs every change of its answer. Credentials
// that it refuses twice in a row make the bot unready. A GitHub that does not answer does
// not: webhooks that come meanwhile are better stored than refused.
func (s *Server) stayKnown(ctx context.Context, login string) {
	every := cmp.Or(s.opt.AskEvery, askEvery)
	for refusals := 0; sleep(ctx, askIn(every, refusals)); {
		err := s.Client.Check(ctx)
		if ctx.Err() != nil {
			return
		}
		s.ready.mu.Lock()
		was, silent := s.ready.login, s.ready.silent
		switch {
		case err == nil:
			refusals, s.ready.login, s.ready.silent = 0, login, time.Time{}
		case refused(err):
			if refusals++; refusals > 1 {
				s.ready.login, s.ready.refusal = "", reason(err)+": it does not accept the bot's credentials any more"
			}
			s.ready.silent = time.Time{}
		case silent.IsZero():
			s.ready.silent = s.opt.Now()
		}
		now := s.ready.login
		s.ready.mu.Unlock()
		switch {
		case now == "" && was != "":
			s.log.Error("GitHub does not accept the bot's credentials any more: no pull request gets a check (was the App's key revoked, or the App deleted?)", "err", err)
		case now != "" && was == "":
			s.log.Info("GitHub accepts the bot again", "login", login)
		case err != nil && !refused(err) && silent.IsZero():
			s.log.Warn("GitHub does not answer the bot", "err", err)
		case err == nil && !silent.IsZero():
			s.log.Info("GitHub answers the bot again", "after", s.opt.Now().Sub(silent).Round(time.Second).String())
		}
	}
}

// refused reports whether an error is about the credentials, and not a limit or a fault.
func refused(err error) bool {
	var e *client.Error
	return errors.As(err, &e) && e.RetryAt.IsZero() && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusNotFound)
}

// reason is an error without addresses and tokens: /readyz is public.
func reason(err error) string {
	var e *client.Error
	if errors.As(err, &e) && e.Status != 0 {
		return fmt.Sprintf("GitHub answers %d", e.Status)
	}
	return "GitHub does not answer"
}

// unready says what is missing, or nothing.
func (s *Server) unready(ctx context.Context) []string {
	var missing []string
	if _, err := s.Journal.Last(ctx, "ready"); err != nil && !errors.Is(err, journal.ErrNotFound) {
		missing = append(missing, "the journal does not answer")
	} else if err := s.Journal.Writable(ctx); err != nil {
		missing = append(missing, "the journal takes no writes: is its disk full?")
	}
	if err := s.outdated.reason(); err != nil {
		return append(missing, err.Error())
	}
	caught, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := s.Ledger.CaughtUp(caught); err != nil {
		missing = append(missing, "the ledger is behind the journal")
	}
	if login, refusal := s.ready.known(); login == "" {
		missing = append(missing, cmp.Or(refusal, "GitHub was not reached yet"))
	}
	return missing
}

// shut is for whom an IP allow list refuses the bot, without the names of accounts. The
// bot is ready for all others.
func (s *Server) shut() []string {
	var all []string
	for who := range s.Client.Stats().Shut {
		who, _, _ = strings.Cut(who, " in ")
		all = append(all, who)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	missing := s.unready(ctx)
	if len(missing) == 0 {
		fmt.Fprintln(w, "ready")
		if role := s.role(ctx); role != "" {
			fmt.Fprintln(w, role)
		}
		if silent := s.ready.silentSince(); !silent.IsZero() {
			fmt.Fprintf(w, "GitHub does not answer since %s\n", silent.UTC().Format(time.RFC3339))
		}
		for _, who := range s.shut() {
			fmt.Fprintf(w, "%s: an IP allow list refuses this machine (add its address in the organisation's security settings)\n", who)
		}
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, m := range missing {
		fmt.Fprintln(w, m)
	}
}

// Ready waits until /readyz says so.
func (s *Server) Ready(ctx context.Context) error {
	for {
		missing := s.unready(ctx)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %v: %w", missing, ctx.Err())
		case <-s.stopped:
			return fmt.Errorf("the server has stopped: %w", errors.Join(s.err, context.Canceled))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
