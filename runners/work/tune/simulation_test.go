package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/internal/long"
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

// newLane creates arms like those of a real space: most are far behind, and a few are close to the best.
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

// halving finds a winner by successive halving on the same values: each step doubles the rounds and keeps the
// better half of the arms.
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
		c.searches /= long.Times(5, 1)
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
				// The gate measures the winner in fresh rounds, so its figure does not contain the luck of the winner.
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

// TestRaceKeepsTheBest checks the error rate: the best arm is dropped in at most 5 % of the races, even if all
// other arms are as fast.
func TestRaceKeepsTheBest(t *testing.T) {
	searches, wrong := long.Times(40, 200), 0
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
