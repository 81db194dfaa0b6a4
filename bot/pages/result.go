package pages

import (
	"context"

	"github.com/kernelgate/kernelgate/gates/result"
)

// result answers with the result of a run, in the form that all programs read.
func (s *Server) result(ctx context.Context, v *visit) (any, error) {
	row, err := s.runOf(ctx, v, v.PathValue("job"))
	if err != nil {
		return nil, err
	}
	p := s.drawn(ctx, row)
	if p.Verdict == nil {
		return nil, ErrNotFound
	}
	r := result.Of(p.Verdict, p.Evidence)
	if p.Evidence != nil {
		r.Evidence = s.URL + "/runs/" + row.Job + "/evidence.json"
	}
	return r, nil
}
