package tune

import (
	"math"
	"slices"
	"testing"
)

// record adds rounds in which each arm has a fixed value and a little noise.
func record(r *Race, from, to int, values map[string]float64) (drops []Drop) {
	for round := from; round < to; round++ {
		noisy := map[string]float64{}
		for _, name := range r.Alive() {
			if v, ok := values[name]; ok {
				noisy[name] = v + 0.001*math.Sin(float64(13*round+len(name)+int(100*v)))
			}
		}
		drops = append(drops, r.Record(round, noisy)...)
	}
	return drops
}

func newRace(t *testing.T, maxRounds int) *Race {
	t.Helper()
	r, err := NewRace(RaceOptions{Epsilon: 0.01, Delta: 0.05, Arms: 8, MaxRounds: maxRounds})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRaceDrops checks who is dropped, by whom, and when.
func TestRaceDrops(t *testing.T) {
	r := newRace(t, 20)
	r.EnterIncumbent("incumbent")
	r.Enter("fast", "slow")
	if r.Best() != "incumbent" || r.Decided() || r.Over() {
		t.Errorf("before the first round: best %q, decided %v, over %v", r.Best(), r.Decided(), r.Over())
	}
	drops := record(r, 0, 10, map[string]float64{"fast": 0.2, "slow": -0.3})
	if len(drops) != 2 || drops[0].By != "fast" || drops[1].By != "fast" || drops[0].Rounds < firstInterim {
		t.Fatalf("dropped %+v, want the incumbent and slow, by fast", drops)
	}
	for _, d := range drops {
		if want := map[string]float64{"incumbent": math.Exp(-0.2), "slow": math.Exp(-0.5)}[d.Arm]; math.Abs(d.Ratio-want) > 0.01 {
			t.Errorf("%s runs at %v of the best, want %v", d.Arm, d.Ratio, want)
		}
	}
	if !r.Decided() || r.Best() != "fast" || !slices.Equal(r.Alive(), []string{"fast"}) {
		t.Errorf("decided %v, best %q, alive %v", r.Decided(), r.Best(), r.Alive())
	}
	ranking := r.Ranking()
	if len(ranking) != 3 || ranking[0].Arm != "fast" || ranking[1].Arm != "incumbent" || ranking[2].Arm != "slow" || !ranking[1].Out || math.Abs(ranking[0].Speedup-math.Expm1(0.2)) > 0.01 {
		t.Errorf("ranking %+v", ranking)
	}
}

// TestRaceNoProofWithoutRounds checks that two rounds prove nothing, however clear they look.
func TestRaceNoProofWithoutRounds(t *testing.T) {
	r := newRace(t, 20)
	r.Enter("fast", "slow")
	if drops := record(r, 0, firstInterim-1, map[string]float64{"fast": 3, "slow": -3}); len(drops) > 0 || r.Decided() {
		t.Errorf("two rounds dropped %v", drops)
	}
}

// TestRaceWithinEpsilon checks that near arms end a race, and that far ones do not.
func TestRaceWithinEpsilon(t *testing.T) {
	r := newRace(t, 20)
	r.Enter("a", "b")
	for round := range 20 {
		swing := 0.002 * float64(1-2*(round%2))
		r.Record(round, map[string]float64{"a": 0.1 + swing, "b": 0.1 - swing})
	}
	if !r.Decided() || len(r.Alive()) != 2 {
		t.Errorf("equal arms: decided %v, alive %v", r.Decided(), r.Alive())
	}
	wide := newRace(t, 6)
	wide.Enter("a", "b")
	for round := range 6 {
		swing := 0.2 * float64(1-2*(round%2))
		wide.Record(round, map[string]float64{"a": swing, "b": -swing})
	}
	if wide.Decided() || !wide.Over() {
		t.Errorf("arms that nothing separates: decided %v, over %v; want a race that ends undecided", wide.Decided(), wide.Over())
	}
}

// TestRaceMeasuresTheOpen checks that an arm is not measured any more once it is proven to be at most epsilon
// faster than the best. It is measured again when a different arm becomes the best.
func TestRaceMeasuresTheOpen(t *testing.T) {
	r := newRace(t, 40)
	r.Enter("best", "equal")
	for round := range 40 {
		if r.Decided() {
			break
		}
		swing := 0.002 * float64(1-2*(round%2))
		r.Record(round, map[string]float64{"best": 0.1 + swing, "equal": 0.099 - swing})
	}
	if !r.Decided() || !slices.Equal(r.Alive(), []string{"best", "equal"}) || !slices.Equal(r.Next(), []string{"best"}) {
		t.Fatalf("decided %v, alive %v, next %v; want both alive and one of them to measure", r.Decided(), r.Alive(), r.Next())
	}
	r.Enter("new")
	if next := r.Next(); !slices.Equal(next, []string{"best", "new"}) {
		t.Errorf("with a new arm, the next round measures %v", next)
	}
	from := r.last + 1
	record(r, from, from+1, map[string]float64{"best": 0.1, "new": 0.5})
	if next := r.Next(); r.Best() != "new" || !slices.Equal(next, []string{"best", "equal", "new"}) {
		t.Errorf("with a new best %q, the next round measures %v, want all", r.Best(), next)
	}
}

// TestRaceWithoutCommonRounds checks that arms without a common round are ordered by their distances from the
// incumbent.
func TestRaceWithoutCommonRounds(t *testing.T) {
	r := newRace(t, 20)
	r.EnterIncumbent("incumbent")
	r.Enter("a", "b")
	r.Record(0, map[string]float64{"a": 0.2})
	r.Record(1, map[string]float64{"b": 0.3})
	if order := r.Elite(3); !slices.Equal(order, []string{"b", "a", "incumbent"}) {
		t.Errorf("the order is %v", order)
	}
}

// TestSpend checks that all interim analyses together spend the error rate.
func TestSpend(t *testing.T) {
	sum, shares := 0.0, spend(0.05, interimsUpTo(40))
	for k, share := range shares {
		if sum += share; k > 0 && share > shares[k-1] {
			t.Errorf("interim %d spends %v, more than the one before", k, share)
		}
	}
	if math.Abs(sum-0.05) > 1e-12 {
		t.Errorf("the interims spend %v of 0.05", sum)
	}
}

// TestRaceGenerations checks that only rounds with both arms count, so that a drift between
// generations favours nobody.
func TestRaceGenerations(t *testing.T) {
	r := newRace(t, 20)
	r.Enter("old", "old2")
	record(r, 0, 6, map[string]float64{"old": 0.2, "old2": 0.1})
	r.Enter("new")
	// The machine has become slower for everybody: new is better than old all the same.
	drops := record(r, 6, 16, map[string]float64{"old": -0.2, "new": -0.15})
	if r.Best() != "new" || len(drops) != 1 || drops[0].Arm != "old" || drops[0].Rounds > 10 {
		t.Errorf("best %q, dropped %+v; want old to be dropped by rounds that had both", r.Best(), drops)
	}
}

// TestRaceElite checks the order of the best.
func TestRaceElite(t *testing.T) {
	r := newRace(t, 20)
	r.EnterIncumbent("incumbent")
	r.Enter("a", "b", "c", "d")
	record(r, 0, 2, map[string]float64{"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.05})
	elite := r.Elite(3)
	if !slices.Equal(elite, []string{"b", "c", "a"}) {
		t.Errorf("the elite is %v", elite)
	}
	if back := r.Disqualify("b"); r.Best() != "c" || len(back) > 0 {
		t.Errorf("after b failed, the best is %q and %v are in the race again", r.Best(), back)
	}
}

// TestRaceDisqualify checks that arms are in the race again that only a failed arm has beaten.
func TestRaceDisqualify(t *testing.T) {
	r := newRace(t, 20)
	r.Enter("cheat", "good", "slow")
	drops := record(r, 0, 8, map[string]float64{"cheat": 1, "good": 0.3, "slow": 0.1})
	if len(drops) != 2 || r.Best() != "cheat" {
		t.Fatalf("dropped %+v, best %q", drops, r.Best())
	}
	if back := r.Disqualify("cheat"); !slices.Equal(back, []string{"good", "slow"}) || r.Best() != "good" {
		t.Errorf("%v are back, and the best is %q", back, r.Best())
	}
	if drops := record(r, 8, 16, map[string]float64{"good": 0.3, "slow": 0.1}); len(drops) != 1 || drops[0].By != "good" {
		t.Errorf("then dropped %+v", drops)
	}
	if back := r.Disqualify("cheat"); len(back) > 0 {
		t.Errorf("the same arm failed twice, and %v are back", back)
	}
}

// TestRaceIgnoresMissingValues checks that a round without a usable value counts for nothing.
func TestRaceIgnoresMissingValues(t *testing.T) {
	r := newRace(t, 20)
	r.Enter("a", "b")
	for round := range 5 {
		r.Record(round, map[string]float64{"a": 0.1, "b": math.NaN()})
	}
	if r.Decided() || r.Best() != "a" {
		t.Errorf("decided %v, best %q: b has no value", r.Decided(), r.Best())
	}
}

func TestRaceRefuses(t *testing.T) {
	for _, opt := range []RaceOptions{{Epsilon: 0, Delta: 0.05}, {Epsilon: 0.01, Delta: 0}, {Epsilon: math.NaN(), Delta: 0.05}, {Epsilon: 0.01, Delta: 3}} {
		if _, err := NewRace(opt); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}
