package tune

import (
	"cmp"
	"math"
	"slices"
)

// A Standing is an arm's place in a race.
type Standing struct {
	Arm     string  `json:"arm"`
	Speedup float64 `json:"speedup"` // over the incumbent: 0.1 is 10 % faster
	Rounds  int     `json:"rounds"`
	Out     bool    `json:"out,omitempty"`
}

// Ranking lists the arms that were measured, and the incumbent: those that are in the race first,
// in each part the fastest first.
func (r *Race) Ranking() []Standing {
	var all []Standing
	for _, a := range r.order() {
		all = append(all, a.standing())
	}
	var out []Standing
	for _, a := range r.racers {
		if a.out && (a.fixed || len(a.values) > 0) {
			out = append(out, a.standing())
		}
	}
	slices.SortStableFunc(out, func(a, b Standing) int { return cmp.Compare(b.Speedup, a.Speedup) })
	return append(all, out...)
}

func (a *racer) standing() Standing {
	return Standing{Arm: a.name, Speedup: math.Expm1(a.mean()), Rounds: len(a.values), Out: a.out}
}

// mean is the arm's mean distance from the incumbent; 0 for the incumbent.
func (a *racer) mean() float64 {
	sum := 0.0
	for _, n := range a.rounds() { // in a fixed order: the sum is the same to the last bit
		sum += a.values[n]
	}
	return sum / float64(max(len(a.values), 1))
}
