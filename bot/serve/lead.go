package serve

import (
	"context"
	"fmt"
	"net/http"
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
		return fmt.Sprintf("leads %d open changes, %d of them with something left to do", c.Open, c.Unsettled)
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
