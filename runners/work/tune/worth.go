package tune

import (
	"math"
	"slices"
)

// Worth is what a value of a toggle gained over another, all else being equal.
type Worth struct {
	Toggle string  `json:"toggle"`
	From   int     `json:"from"`
	To     int     `json:"to"`
	Gain   float64 `json:"gain"`  // mean speedup of To over From: 0.1 is 10 % faster
	Pairs  int     `json:"pairs"` // candidates that differ in nothing else
}

// worth compares candidates that differ in one toggle. Of two values the first in the manifest is
// From.
func (s *Search) worth() []Worth {
	var all []Worth
	for _, t := range s.space.Toggles {
		for i, from := range t.Values {
			for _, to := range t.Values[i+1:] {
				if w := s.pairs(t.Name, from, to); w.Pairs > 0 {
					all = append(all, w)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Worth) int {
		switch x, y := math.Abs(a.Gain), math.Abs(b.Gain); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return all
}

// pairs is the mean over all pairs of candidates with these two values, of their mean difference in
// common rounds.
func (s *Search) pairs(toggle string, from, to int) Worth {
	w := Worth{Toggle: toggle, From: from, To: to}
	sum := 0.0
	for _, t := range s.tried {
		other := s.ids[s.space.ID(t.Candidate.with(toggle, to))]
		if other == nil || s.space.settings(t.Candidate)[toggle] != from {
			continue
		}
		if d, ok := s.apart(other, t); ok {
			sum += d
			w.Pairs++
		}
	}
	w.Gain = math.Expm1(sum / float64(max(w.Pairs, 1)))
	return w
}

// apart returns how much faster one candidate is than another: in common rounds of the race or, if there are none, by the screen.
func (s *Search) apart(a, b *Tried) (float64, bool) {
	if x, y := s.race.find(a.ID), s.race.find(b.ID); x != nil && y != nil {
		if d, ok := distance(x, y); ok {
			return d, true
		}
	}
	value := func(t *Tried) float64 {
		switch {
		case t == s.tried[0]:
			return 0
		case t.screen == nil || t.Status == Failed:
			return math.NaN()
		}
		return t.screen.value(s.Log.Header)
	}
	d := value(a) - value(b)
	return d, !math.IsNaN(d) && !math.IsInf(d, 0)
}
