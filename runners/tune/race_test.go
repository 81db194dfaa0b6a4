package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// A lane is a simulated set of arms. Every round has a drift that moves all arms alike, and each arm
// has the noise of a fresh process on top.
type lane struct {
	truth  []float64 // log speedups over the incumbent
	drift  float64   // standard deviation of a round
	noise  simulate.Noise
	rng    *rand.Rand
	spent  int
	rounds map[int]float64
}

// newLane has arms like those of a real space: most far behind, a few close to the best.
func newLane(arms int, seed uint64) *lane {
	l := &lane{drift: 0.02, noise: simulate.Noise{Between: 0.006, Within: 0.02, Dof: 3}, rng: rand.New(rand.NewPCG(seed, 1)), rounds: map[int]float64{}}
	best := 0.05 + 0.1*l.rng.Float64()
	for i := range arms {
		gap := 0.15 * l.rng.ExpFloat64()
		if i == 0 {
			gap = 0
		}
		l.truth = append(l.truth, best-gap)
	}
	l.rng.Shuffle(arms, func(i, j int) { l.truth[i], l.truth[j] = l.truth[j], l.truth[i] })
	return l
}

func (l *lane) measure(arm, round int) float64 {
	if _, ok := l.rounds[round]; !ok {
		l.rounds[round] = l.drift * l.rng.NormFloat64()
	}
	l.spent++
	ratios := l.noise.Ratios(l.rng, math.Exp(l.truth[arm]+l.rounds[round]), 1, 12).Rounds[0]
	return math.Log(stats.Describe(ratios).P50)
}

// regret is how much slower an arm is than the best.
func (l *lane) regret(arm int) float64 { return slices.Max(l.truth) - l.truth[arm] }

// race runs a race and returns its winner, and whether it was decided.
func (l *lane) race(t testing.TB, opt RaceOptions) (winner int, decided bool) {
	t.Helper()
	opt.Arms = len(l.truth)
	r, err := NewRace(opt)
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]int{}
	for i := range l.truth {
		name := fmt.Sprint(i)
		number[name] = i
		r.Enter(name)
	}
	for round := 0; !r.Decided() && !r.Over(); round++ {
		values := map[string]float64{}
		for _, name := range r.Next() {
			values[name] = l.measure(number[name], round)
		}
		r.Record(round, values)
	}
	return number[r.Best()], r.Decided()
}

// halving is successive halving with the same values: each rung doubles the rounds and keeps the
// better half.
func (l *lane) halving() int {
	alive := make([]int, len(l.truth))
	sum := make([]float64, len(l.truth))
	for i := range alive {
		alive[i] = i
	}
	for rounds, round := 3, 0; len(alive) > 1; rounds *= 2 {
		for range rounds {
			for _, arm := range alive {
				sum[arm] += l.measure(arm, round)
			}
			round++
		}
		slices.SortFunc(alive, func(a, b int) int {
			if sum[a] > sum[b] {
				return -1
			}
			return 1
		})
		alive = alive[:(len(alive)+1)/2]
	}
	return alive[0]
}

// naive takes one measurement of each arm and believes the best.
func (l *lane) naive() (winner int, claimed float64) {
	claimed = math.Inf(-1)
	for arm := range l.truth {
		if v := l.measure(arm, arm); v > claimed { // one after the other: each in a separate round
			winner, claimed = arm, v
		}
	}
	return winner, claimed
}

// TestRaceFindsTheBest checks that the winner is within epsilon of the best in 95 % of searches, for
// few and for many arms, while drifts move whole rounds. It also compares the cost with exhaustive
// measuring and with successive halving.
func TestRaceFindsTheBest(t *testing.T) {
	const epsilon = 0.01
	for _, c := range []struct{ arms, searches int }{{8, 200}, {50, 40}, {200, 20}} {
		if testing.Short() {
			c.searches /= 5
		}
		t.Run(fmt.Sprint(c.arms), func(t *testing.T) {
			good, decided, spent, halved, halvedGood, naiveGood := 0, 0, 0, 0, 0, 0
			naiveBias, ours := 0.0, 0.0
			for seed := range uint64(c.searches) {
				l := newLane(c.arms, seed)
				winner, ok := l.race(t, RaceOptions{Epsilon: epsilon, Delta: 0.05, MaxRounds: defaultMaxRounds})
				spent += l.spent
				if l.regret(winner) <= epsilon {
					good++
				}
				if ok {
					decided++
				}
				// The gate measures the winner in fresh rounds: what it claims has no winner's luck.
				fresh := 0.0
				for round := range 20 {
					fresh += l.measure(winner, 1000+round) / 20
				}
				ours += fresh - l.truth[winner]

				h := newLane(c.arms, seed)
				if h.regret(h.halving()) <= epsilon {
					halvedGood++
				}
				halved += h.spent
				n := newLane(c.arms, seed)
				w, claimed := n.naive()
				naiveBias += claimed - n.truth[w]
				if n.regret(w) <= epsilon {
					naiveGood++
				}
			}
			per := func(n int) float64 { return float64(n) / float64(c.searches) }
			exhaustive := float64(c.arms * defaultMaxRounds)
			t.Logf("%d arms: within 1 %% of the best in %.1f %% of %d searches, decided in %.1f %%; %.0f measurements, exhaustive %.0f (%.0f %%), successive halving %.0f (within 1 %% in %.1f %%); "+
				"best of N single measurements: within 1 %% in %.1f %%, its claim is %.2f %% too high, the confirmed claim %+.2f %%",
				c.arms, 100*per(good), c.searches, 100*per(decided), per(spent), exhaustive, 100*per(spent)/exhaustive, per(halved), 100*per(halvedGood),
				100*per(naiveGood), 100*naiveBias/float64(c.searches), 100*ours/float64(c.searches))
			if per(good) < 0.95 {
				t.Errorf("the winner is within %v of the best in %.3f of the searches, want 0.95", epsilon, per(good))
			}
			if per(spent) > exhaustive/3 {
				t.Errorf("%.0f measurements, want at most a third of the exhaustive %.0f", per(spent), exhaustive)
			}
			if bias := naiveBias / float64(c.searches); bias < 0.005 {
				t.Errorf("the luck of the best of %d is only %.4f: the simulation has too little noise to show anything", c.arms, bias)
			}
			if bias := ours / float64(c.searches); math.Abs(bias) > 0.005 {
				t.Errorf("the confirmed claim is off by %.4f", bias)
			}
		})
	}
}

// TestRaceKeepsTheBest checks the error rate: an arm that no other beats is hardly ever dropped, even
// if all others are as fast.
func TestRaceKeepsTheBest(t *testing.T) {
	searches, wrong := 200, 0
	if testing.Short() {
		searches = 40
	}
	for seed := range uint64(searches) {
		l := newLane(8, seed)
		for i := range l.truth {
			l.truth[i] = 0.1
		}
		r, err := NewRace(RaceOptions{Epsilon: 0.01, Delta: 0.05, Arms: 8, MaxRounds: 20})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			r.Enter(fmt.Sprint(i))
		}
		dropped := false
		for round := range 20 {
			values := map[string]float64{}
			for i := range 8 {
				values[fmt.Sprint(i)] = l.measure(i, round)
			}
			dropped = slices.ContainsFunc(r.Record(round, values), func(d Drop) bool { return d.Arm == "0" }) || dropped
		}
		if dropped {
			wrong++
		}
	}
	rate := float64(wrong) / float64(searches)
	t.Logf("an arm that no other beats was dropped in %.1f %% of races", 100*rate)
	if rate > 0.05 {
		t.Errorf("the best arm was dropped in %.3f of the races, want at most 0.05", rate)
	}
}

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
	if len(drops) != 2 || drops[0].By != "fast" || drops[1].By != "fast" || drops[0].Rounds < firstLook {
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
	if drops := record(r, 0, firstLook-1, map[string]float64{"fast": 3, "slow": -3}); len(drops) > 0 || r.Decided() {
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

// TestRaceMeasuresTheOpen checks that an arm with a proof about the best costs no further rounds, until
// the best is a different arm.
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

// TestRaceWithoutCommonRounds checks that arms that never ran together are ordered by their distances
// from the incumbent.
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

// TestSpend checks that all looks together spend the error rate.
func TestSpend(t *testing.T) {
	sum, shares := 0.0, spend(0.05, looksUpTo(40))
	for k, share := range shares {
		if sum += share; k > 0 && share > shares[k-1] {
			t.Errorf("look %d spends %v, more than the one before", k, share)
		}
	}
	if math.Abs(sum-0.05) > 1e-12 {
		t.Errorf("the looks spend %v of 0.05", sum)
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

// TestRaceEliteAndRetire checks who stays for the next generation.
func TestRaceEliteAndRetire(t *testing.T) {
	r := newRace(t, 20)
	r.EnterIncumbent("incumbent")
	r.Enter("a", "b", "c", "d")
	record(r, 0, 2, map[string]float64{"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.05})
	elite := r.Elite(3)
	if !slices.Equal(elite, []string{"b", "c", "a"}) {
		t.Errorf("the elite is %v", elite)
	}
	r.Retire(elite)
	if !slices.Equal(r.Alive(), []string{"a", "b", "c"}) {
		t.Errorf("alive are %v", r.Alive())
	}
	if back := r.Disqualify("b"); r.Best() != "c" || !slices.Equal(back, []string{"d"}) {
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
