package pages

import (
	"net/http"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
)

// alonePolicy lets a picture that stands in another page have colours of its own.
const alonePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// intervals is a run's picture of its intervals, for a comment.
func (s *Server) intervals(w http.ResponseWriter, r *http.Request) {
	row, err := s.runOf(r.Context(), s.visit(r), r.PathValue("job"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := s.drawn(r.Context(), row)
	if p.Forest == "" {
		s.fail(w, r, ErrNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", alonePolicy)
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	_, _ = w.Write([]byte(chart.Alone(string(p.Forest)))) // a browser that has gone needs no picture
}
