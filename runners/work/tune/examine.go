package tune

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/runners"
)

// An examination is what every candidate must pass that comes so far. Its results are in the log.
type examination struct {
	doing string // to the candidate whose name follows
	known map[string]Checked
	ask   func(ctx context.Context, id string, c Candidate) (Checked, error)
	entry func(*Checked) entry // of the log
}

// examine reports whether a candidate passes. A later search finds the refusal of one that does not.
func (s *Search) examine(ctx context.Context, t *Tried, x examination) (bool, error) {
	checked, ok := x.known[t.ID]
	if !ok {
		doing := x.doing + " " + s.space.Short(t.Candidate)
		s.report(runners.Event{Text: doing})
		var err error
		if checked, err = x.ask(ctx, t.ID, t.Candidate); err != nil {
			return false, fmt.Errorf("%s: %w", doing, err)
		}
		checked.ID = t.ID
		if err := s.Log.add(x.entry(&checked)); err != nil {
			return false, err
		}
		b, _ := s.Log.build(t.ID)
		if err := s.Failures.Add(s.Lab.Device(), b.Same, s.space.Short(t.Candidate), checked.Refusal); err != nil {
			return false, err
		}
	}
	s.seconds += checked.Seconds
	if checked.Refusal != nil {
		s.fail(t, checked.Refusal)
		return false, nil
	}
	return true, nil
}
