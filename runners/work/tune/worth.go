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
	Pairs  int     `json:"pairs"` // candidates that differ in nothing else, and were in the same rounds
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
		a := s.race.find(t.ID)
		if a == nil || s.space.settings(t.Candidate)[toggle] != from {
			continue
		}
		b := s.race.find(s.space.ID(t.Candidate.with(toggle, to)))
		if b == nil {
			continue
		}
		if d, ok := distance(b, a); ok {
			sum += d
			w.Pairs++
		}
	}
	w.Gain = math.Expm1(sum / float64(max(w.Pairs, 1)))
	return w
}
