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

// mean returns the arm's mean distance from the incumbent, which is 0 for the incumbent itself.
func (a *racer) mean() float64 {
	sum := 0.0
	for _, n := range a.rounds() { // in a fixed order: the sum is the same to the last bit
		sum += a.values[n]
	}
	return sum / float64(max(len(a.values), 1))
}

// order returns the arms that are in the race, the fastest first. The arms may have run in different rounds,
// so order compares their distances from one arm of the last round: the arm with most rounds.
func (r *Race) order() []*racer {
	alive := slices.DeleteFunc(r.alive(), func(a *racer) bool { return !a.fixed && len(a.values) == 0 })
	if len(alive) == 0 {
		return nil
	}
	recent := func(a *racer) int {
		if _, ok := a.values[r.last]; ok {
			return 1
		}
		return 0
	}
	anchor := slices.MaxFunc(alive, func(a, b *racer) int {
		return cmp.Or(recent(a)-recent(b), cmp.Compare(len(a.values), len(b.values)))
	})
	at := map[*racer]float64{}
	for _, a := range alive {
		d, ok := distance(a, anchor)
		if !ok { // no common round: by their distances from the incumbent
			d = a.mean() - anchor.mean()
		}
		at[a] = d
	}
	slices.SortStableFunc(alive, func(a, b *racer) int { return cmp.Compare(at[b], at[a]) })
	return alive
}

// distance returns the mean difference of two arms over their common rounds.
func distance(a, b *racer) (mean float64, ok bool) {
	if a == b {
		return 0, true
	}
	n := 0
	from := a
	if a.fixed {
		from = b
	}
	for _, round := range from.rounds() {
		if a.ran(round) && b.ran(round) {
			mean += a.value(round) - b.value(round)
			n++
		}
	}
	return mean / float64(max(n, 1)), n > 0
}
