package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/runners"
)

const (
	// screenShare is the part of the budget in which candidates are compiled and screened.
	screenShare = 0.5
	minRacers   = 8
	maxRacers   = 32
	// screenNoise is how many standard errors of their difference two candidates are apart that the screen can order.
	screenNoise = 3
)

// screen times candidates for the first time. Candidates that were built and not screened are screened together.
func (s *Search) screen(ctx context.Context, ready []*Tried) error {
	var ids []string
	var asked []Candidate
	for _, t := range ready {
		if _, ok := s.Log.screens[t.ID]; !ok {
			ids, asked = append(ids, t.ID), append(asked, t.Candidate)
		}
	}
	if len(ids) > 0 {
		s.report(runners.Event{Text: fmt.Sprintf("timing %d candidates next to each other", len(ids))})
		found, err := s.Lab.Screen(ctx, ids, asked)
		if err != nil {
			return fmt.Errorf("timing candidates for the first time: %w", err)
		}
		for i, f := range found {
			f.ID = ids[i]
			if err := s.Log.add(entry{Screen: &f}); err != nil {
				return err
			}
			b, _ := s.Log.build(f.ID)
			if err := s.Failures.Add(s.Lab.Device(), b.Same, s.space.Short(asked[i]), f.Refusal); err != nil {
				return err
			}
		}
	}
	for _, t := range ready {
		found := s.Log.screens[t.ID]
		s.seconds += found.Seconds
		if found.Refusal != nil {
			s.fail(t, found.Refusal)
			continue
		}
		t.screen, t.Micros, t.Status, t.measured = &found, found.Micros, Behind, s.seconds
		t.Why = "others were faster in the screen"
		s.screened = append(s.screened, t)
	}
	slices.SortStableFunc(s.screened, func(a, b *Tried) int {
		if x, y := s.doubtful(a), s.doubtful(b); x != y {
			return map[bool]int{true: 1, false: -1}[x]
		}
		return cmp.Compare(s.screenValue(b), s.screenValue(a))
	})
	if len(s.screened) > 0 {
		best := s.screened[0]
		s.result.Curve = append(s.result.Curve, Mark{Seconds: s.seconds, Speedup: math.Expm1(s.screenValue(best)), Best: best.ID})
	}
	return nil
}

// doubtful reports whether a candidate will probably fail: its outputs are not the incumbent's, or it is slower on a shape than the
// policy's guard allows.
func (s *Search) doubtful(t *Tried) bool {
	for shape, limit := range s.Log.Header.Guards {
		if ratio, ok := t.screen.Speedups[shape]; ok && math.Log(ratio)+screenNoise*t.screen.Noise < math.Log(limit) {
			return true
		}
	}
	return t.screen.Differs
}

// small reports whether all candidates can race: a screen would leave nobody out.
func (s *Search) small() bool {
	return !s.Log.Header.Exhaustive && s.space.Size() <= minRacers+1
}

// screenValue is what the screen says about a candidate. A candidate without an undisturbed sample comes last.
func (s *Search) screenValue(t *Tried) float64 {
	if v := t.screen.value(s.Log.Header); !math.IsNaN(v) {
		return v
	}
	return math.Inf(-1)
}

// leaders are the best three, for the proposer: by the race or, before there is one, by the screen.
func (s *Search) leaders() []string {
	if s.Log.Header.Exhaustive || s.small() {
		return s.race.Elite(elite)
	}
	var ids []string
	for _, t := range s.screened[:min(elite, len(s.screened))] {
		ids = append(ids, t.ID)
	}
	return ids
}

// enterBest lets the next candidates of the screen into the race: at least eight, and everything that the screen cannot tell from
// the best of them. It reports whether there were any.
func (s *Search) enterBest() bool {
	if s.Log.Header.Exhaustive {
		return false
	}
	var best *Tried
	n := 0
	s.lost = 0
	for _, t := range s.screened {
		if t.Status != Behind {
			continue
		}
		best = cmp.Or(best, t)
		near := s.screenValue(t) >= s.screenValue(best)-screenNoise*math.Hypot(t.screen.Noise, best.screen.Noise) && s.doubtful(t) == s.doubtful(best)
		if n >= maxRacers || n >= minRacers && !near {
			break
		}
		t.Why = ""
		s.enter(t)
		n++
	}
	return n > 0
}
