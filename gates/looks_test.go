package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// However somebody mixes attempts at one machine code, of which some are cancelled
// or fail and leave nothing, some go on with rounds of any earlier one and some
// start anew, all looks that ever took place together spend no more than the
// policy's error rate.
func TestAttemptsShareOneErrorRate(t *testing.T) {
	gate := performancePolicy(t, `{target: {speedup: ">= +10%"}, confidence: 95%, rounds: {min: 6, max: 20}, looks: [6, 12, 20]}`).Rules[0].Gates.Performance
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
			looks, err := schedule(gate, rounds)
			if err != nil {
				t.Fatal(err)
			}
			// The same look at the same rounds says the same: it is one look.
			for _, l := range reached(looks, len(rounds), r.IntN(4) == 0) {
				spent[fmt.Sprint(rounds[l.rounds-1].Seed, l.rounds)] = l.alpha
			}
		}
		sum := 0.0
		for _, alpha := range spent {
			sum += alpha
		}
		if sum > 0.025+1e-12 {
			t.Fatalf("seed %d: the looks spend %v of 0.025", seed, sum)
		}
		most = max(most, sum)
	}
	if most < 0.02 {
		t.Errorf("no mixture came near the policy's error rate (%v): the test shows nothing", most)
	}
}

// An attempt without rounds of those before it still has the policy's looks, at a
// share of its own.
func TestAttemptsThatLeftNoRounds(t *testing.T) {
	gate := performancePolicy(t, `{target: {speedup: ">= +10%"}, confidence: 95%, rounds: {min: 6, max: 20}, looks: [6, 12, 20]}`).Rules[0].Gates.Performance
	for attempt, want := range map[int]float64{0: 0.0125, 1: 0.0125, 2: 0.00625, 5: 0.00078125} {
		looks, err := schedule(gate, []Round{{Attempt: attempt}})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, l := range looks {
			sum += l.alpha
		}
		if len(looks) != 3 || sum < want-1e-12 || sum > want+1e-12 {
			t.Errorf("attempt %d spends %v in %d looks, want %v in 3", attempt, sum, len(looks), want)
		}
	}
	// Numbers that do not grow spend no share twice either.
	looks, err := schedule(gate, []Round{{Attempt: 3}, {Attempt: 4}, {Attempt: 1}, {Attempt: 4}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.025 / 16, 0.025 / 32, 0.025 / 64} {
		if got := looks[i].alpha; got < want-1e-12 || got > want+1e-12 {
			t.Errorf("look %d spends %v, want %v", i, got, want)
		}
	}
}
