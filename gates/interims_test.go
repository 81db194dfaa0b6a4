package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// However somebody mixes attempts at one machine code, of which some are cancelled
// or fail and leave nothing, some go on with rounds of any earlier one and some
// start anew, all interims that ever took place together spend no more than the
// code's part of the policy's error rate.
func TestAttemptsShareOneErrorRate(t *testing.T) {
	gate := performancePolicy(t, `{target: {speedup: ">= +10%"}, confidence: 95%, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`).Rules[0].Gates.Performance
	most := 0.0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		spent, kept := map[string]float64{}, [][]Round{nil}
		for attempt := 1; attempt <= 1+r.IntN(20); attempt++ {
			rounds := slices.Clone(kept[r.IntN(len(kept))])
			for range r.IntN(25) {
				rounds = append(rounds, Round{Attempt: attempt, Seed: r.Uint64()})
			}
			if len(rounds) == 0 || r.IntN(3) == 0 {
				continue // cancelled, or the runner failed
			}
			kept = append(kept, rounds)
			interims, err := schedule(gate, rounds)
			if err != nil {
				t.Fatal(err)
			}
			// The same look at the same rounds says the same: it is one look.
			for _, l := range reached(interims, len(rounds), r.IntN(4) == 0) {
				spent[fmt.Sprint(rounds[l.rounds-1].Seed, l.rounds)] = l.alpha
			}
		}
		sum := 0.0
		for _, alpha := range spent {
			sum += alpha
		}
		if sum > 0.0125+1e-12 {
			t.Fatalf("seed %d: the interims spend %v of 0.0125, which is the first machine code's", seed, sum)
		}
		most = max(most, sum)
	}
	if most < 0.01 {
		t.Errorf("no mixture came near the policy's error rate (%v): the test shows nothing", most)
	}
}

// An attempt without rounds of those before it still has the policy's interims, at a
// share of its own.
func TestAttemptsThatLeftNoRounds(t *testing.T) {
	gate := performancePolicy(t, `{target: {speedup: ">= +10%"}, confidence: 95%, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`).Rules[0].Gates.Performance
	for attempt, want := range map[int]float64{0: 0.00625, 1: 0.00625, 2: 0.003125, 5: 0.000390625} {
		interims, err := schedule(gate, []Round{{Attempt: attempt}})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, l := range interims {
			sum += l.alpha
		}
		if len(interims) != 3 || sum < want-1e-12 || sum > want+1e-12 {
			t.Errorf("attempt %d spends %v in %d interims, want %v in 3", attempt, sum, len(interims), want)
		}
	}
	// Numbers that do not grow spend no share twice either.
	var rounds []Round
	for _, attempt := range []int{3, 4, 1, 4} {
		rounds = append(rounds, slices.Repeat([]Round{{Attempt: attempt}}, 6)...)
	}
	interims, err := schedule(gate, rounds)
	if err != nil {
		t.Fatal(err)
	}
	interims = interims[len(interims)-3:]
	for i, want := range []float64{0.025 / 32, 0.025 / 64, 0.025 / 128} {
		if got := interims[i].alpha; got < want-1e-12 || got > want+1e-12 {
			t.Errorf("look %d spends %v, want %v", i, got, want)
		}
	}
}

// steps multiplies the candidate's times from a round on.
func steps(e *Evidence, from int, factor float64) {
	for r := from; r < len(e.Performance.Rounds); r++ {
		s := &e.Performance.Rounds[r].Series[0]
		for i, side := range strings.ReplaceAll(s.Order, " ", "") {
			if side == SideCandidate {
				s.Nanos[i] *= factor
			}
		}
	}
}

// attempt makes rounds those of a later attempt.
func attempt(e *Evidence, from, n int) {
	for r := from; r < len(e.Performance.Rounds); r++ {
		e.Performance.Rounds[r].Attempt = n
	}
}

const interimPolicy = `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`

// Where the budget ended the measuring between two interims, the next interim took place
// there. What it decided stands, whatever is measured after it.
func TestLooksTakenEarlyStand(t *testing.T) {
	loud := func(ratio float64) machine {
		m := quiet(ratio)
		m.blocks = 8
		m.model = heavy
		return m
	}
	first := func(e *Evidence, n int, exhausted bool) *Evidence {
		part := *e
		part.Performance = &Performance{Rounds: e.Performance.Rounds[:n], Exhausted: exhausted}
		return &part
	}
	found := 0
	for seed := range uint64(40) {
		// Open after 6 rounds, and too slow when the budget was spent after 9.
		e := loud(1.086).measured(newRand(1, seed), 40)
		if judged(t, interimPolicy, first(e, 6, false)).Reason != ReasonInconclusive {
			continue
		}
		v := judged(t, interimPolicy, first(e, 9, true))
		if v.Reason != ReasonTooSlow {
			continue
		}
		found++
		if v.Measuring.Rounds != 9 || v.Measuring.Interim != 2 {
			t.Fatalf("judged after %d rounds at look %d", v.Measuring.Rounds, v.Measuring.Interim)
		}
		steps(e, 9, 1/1.6)
		attempt(e, 9, 2)
		again := judged(t, interimPolicy, e)
		expect(t, again, Defer, ReasonTooSlow, "Too slow")
		if again.Measuring.Rounds != 9 {
			t.Errorf("decided again after %d rounds", again.Measuring.Rounds)
		}
	}
	if found == 0 {
		t.Fatal("no run is decided between its interims")
	}
}

// The early interim spends the share of the one that it takes the place of, and the interims
// behind it are void.
func TestScheduleAfterABudget(t *testing.T) {
	gate := performancePolicy(t, interimPolicy).Rules[0].Gates.Performance
	for _, c := range []struct {
		first, second int
		want          string
	}{
		{9, 11, "6 at 0.188 %, 9 at 0.188 %, 20 at 0.313 %"},
		{12, 8, "6 at 0.188 %, 12 at 0.188 %, 20 at 0.313 %"},
		{15, 5, "6 at 0.188 %, 12 at 0.188 %, 15 at 0.250 %, 20 at 0.313 %"},
		{4, 1, ""},
		{4, 2, "6 at 0.313 %"},
	} {
		var rounds []Round
		for range c.first {
			rounds = append(rounds, Round{Attempt: 1})
		}
		for range c.second {
			rounds = append(rounds, Round{Attempt: 2})
		}
		interims, err := schedule(gate, rounds)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range interims {
			got = append(got, fmt.Sprintf("%d at %.3f %%", l.rounds, 100*l.alpha))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%d rounds and %d more: interims after %s; want %s", c.first, c.second, text, c.want)
		}
	}
}

// A budget that leaves too few rounds to look at leaves no look.
func TestTooFewRoundsAreNoLook(t *testing.T) {
	e := quiet(1.5).measured(newRand(1, 1), 4)
	e.Performance.Exhausted = true
	expect(t, judged(t, gate10, e), Defer, ReasonInconclusive, "4 rounds were measured")
	attempt(e, 2, 2)
	expect(t, judged(t, gate10, e), Defer, ReasonInconclusive, "4 rounds were measured")
}
