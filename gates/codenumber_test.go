package gates

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// number makes the rounds those of the n-th machine code of a change.
func number(e *Evidence, n int) *Evidence {
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].CodeNumber = n
	}
	return e
}

// Whatever sequence of machine codes and attempts an author tries, all looks at all of
// them together spend no more than the policy's error rate.
func TestCodesShareOneErrorRate(t *testing.T) {
	gate := performancePolicy(t, interimPolicy).Rules[0].Gates.Performance
	most := 0.0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 8))
		sum := 0.0
		for n := 1; n <= 1+r.IntN(300); n++ {
			var rounds []Round
			for attempt := 1; attempt <= 1+r.IntN(6); attempt++ {
				for range r.IntN(30) {
					rounds = append(rounds, Round{Attempt: attempt, CodeNumber: n})
				}
			}
			if len(rounds) == 0 {
				continue // cancelled before its first round
			}
			looks, err := schedule(gate, rounds)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range looks {
				sum += l.alpha
			}
		}
		if sum > 0.025+1e-12 {
			t.Fatalf("seed %d: all looks spend %v of 0.025", seed, sum)
		}
		most = max(most, sum)
	}
	if most < 0.02 {
		t.Errorf("no sequence came near the policy's error rate (%v): the test shows nothing", most)
	}
}

// A later machine code is looked at as soon as enough rounds can agree, and all of its
// looks together spend its part.
func TestLooksOfLaterCodes(t *testing.T) {
	gate := performancePolicy(t, interimPolicy).Rules[0].Gates.Performance
	for n, want := range map[int][]int{1: {6, 12, 20}, 2: {6, 8, 12, 20}, 10: {6, 12, 20}, 50: {6, 17, 20}, 200: {6, 21}, 1000: {6, 25}} {
		if got := interimsOf(gate, n); !slices.Equal(got, want) {
			t.Errorf("machine code %d is looked at after %v rounds, want %v", n, got, want)
		}
		if got := MostRounds(gate, n); got != want[len(want)-1] {
			t.Errorf("machine code %d takes at most %d rounds, want %d", n, got, want[len(want)-1])
		}
		looks, err := schedule(gate, []Round{{Attempt: 1, CodeNumber: n}})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, l := range looks {
			sum += l.alpha
		}
		if part := 0.025 / float64(n) / float64(n+1) / 2; math.Abs(sum-part) > 1e-12 {
			t.Errorf("the first attempt at machine code %d spends %v, want %v", n, sum, part)
		}
	}
	// A budget that ends the measuring before enough rounds are there proves nothing.
	e := number(quiet(1.5).measured(newRand(1, 1), 11), 10)
	e.Performance.Exhausted = true
	expect(t, judged(t, interimPolicy, e), Defer, ReasonInconclusive, "It is number 10")
	expect(t, judged(t, interimPolicy, number(quiet(1.5).measured(newRand(1, 1), 12), 10)), Pass, "", "Proven")
	expect(t, judged(t, interimPolicy, number(quiet(1.01).measured(newRand(1, 1), 6), 10)), Defer, ReasonTooSlow, "Too slow")
}

// A verdict says that a later machine code is judged more strictly, and when that keeps
// it open it says what helps.
func TestLaterCodesAreTold(t *testing.T) {
	first := judged(t, interimPolicy, quiet(1.5).measured(newRand(1, 1), 6))
	if m := first.Measuring; m.CodeNumber != 0 || m.ErrorRate != 0 {
		t.Errorf("the first machine code is told as number %d at %v", m.CodeNumber, m.ErrorRate)
	}
	v := judged(t, interimPolicy, number(quiet(1.5).measured(newRand(1, 1), 20), 7))
	if m := v.Measuring; m.CodeNumber != 7 || m.ErrorRate != 0.000892857 || m.Confidence >= 1 {
		t.Errorf("machine code 7 is told as %+v", m)
	}
	found := 0
	for seed := range uint64(30) {
		m := quiet(1.11)
		m.model = heavy
		e := m.measured(newRand(2, seed), 40)
		if judged(t, interimPolicy, number(e, 1)).Outcome != Pass {
			continue
		}
		v := judged(t, interimPolicy, number(e, 200))
		if v.Outcome == Pass {
			continue
		}
		if strings.Contains(v.Summary, "It is number 200, and each further machine code must pass a stricter test: it needs a larger gain or more rounds") {
			found++
		}
	}
	if found == 0 {
		t.Error("no run is kept open by the number of its machine code")
	}
}

// Most rounds that meet the goal by luck prove nothing about a later machine code, however
// exact the figures look.
func TestLaterCodesCountRounds(t *testing.T) {
	// 18 of 20 rounds lie far above the threshold, two just below it.
	e := quiet(1).measured(newRand(1, 1), 20)
	for r := range e.Performance.Rounds {
		ratio := 1.5
		if r == 4 || r == 11 {
			ratio = 1.09
		}
		s := &e.Performance.Rounds[r].Series[0]
		i := 0
		for _, side := range strings.ReplaceAll(s.Order, " ", "") {
			s.Nanos[i] = 1e5 * (1 + 1e-5*float64(i%7))
			if side == SideCandidate {
				s.Nanos[i] /= ratio
			}
			i++
		}
	}
	expect(t, judged(t, interimPolicy, number(e, 10)), Pass, "", "Proven")
	v := judged(t, interimPolicy, number(e, 20))
	expect(t, v, Defer, ReasonInconclusive, "It is number 20")
	if got := strings.Join(v.ToPass, "; "); !strings.Contains(got, "comment /rebench: 18 of 20 rounds meet the goal on mission, and machine code 20 of this change needs more such rounds") {
		t.Errorf("to pass: %s", got)
	}
}

func TestSignP(t *testing.T) {
	for _, c := range []struct {
		heads, n int
		want     float64
	}{{6, 6, 1.0 / 64}, {0, 6, 1}, {5, 6, 7.0 / 64}, {0, 0, 1}, {1, 0, 0}, {20, 20, math.Exp2(-20)}} {
		if got := signP(c.heads, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d: %v, want %v", c.heads, c.n, got, c.want)
		}
	}
}
