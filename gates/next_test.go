package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Next asks for one thing after the other, and for nothing behind a failure.
func TestNextInOrder(t *testing.T) {
	p := parsePolicy(t, fullPolicy)
	whole := passing()
	e := *whole
	e.Candidate, e.Correctness, e.Performance, e.Profile = nil, nil, nil, nil
	var asked []string
	for need := Next(p, &e); need.Gate != ""; need = Next(p, &e) {
		asked = append(asked, string(need.Gate))
		switch need.Gate {
		case "build":
			e.Candidate = whole.Candidate
		case "correctness":
			e.Correctness = whole.Correctness
		case "performance":
			if need.Rounds != 6 {
				t.Fatalf("the first look is after %d rounds, want 6", need.Rounds)
			}
			e.Performance = whole.Performance
		case "profile":
			e.Profile = whole.Profile
		}
	}
	if want := []string{"build", "correctness", "performance", "profile"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func TestNextStops(t *testing.T) {
	for name, change := range map[string]func(*Evidence){
		"a build that failed":          func(e *Evidence) { e.Candidate = &Build{Error: "x"}; e.Correctness = nil },
		"a budget that is overrun":     func(e *Evidence) { e.Candidate.Resources.SpillStores = some(4); e.Correctness = nil },
		"a wrong output":               func(e *Evidence) { e.Correctness.Cases[0].Errors.NaN = 1; e.Performance = nil },
		"equal machine code":           func(e *Evidence) { e.SameCode, e.Performance = true, nil },
		"a fault of the runner":        func(e *Evidence) { e.Fault, e.Correctness = "x", nil },
		"cases that are not all there": func(e *Evidence) { e.Correctness.Cases = e.Correctness.Cases[:1]; e.Performance = nil },
		"a spent budget":               func(e *Evidence) { e.Performance.Rounds, e.Performance.Exhausted = e.Performance.Rounds[:2], true },
	} {
		t.Run(name, func(t *testing.T) {
			e := passing()
			change(e)
			if need := Next(parsePolicy(t, fullPolicy), e); need != (Need{}) {
				t.Errorf("still asks for %+v", need)
			}
		})
	}
}

// An undecided run is measured up to the last look and not one round further.
func TestNextEndsAtTheLastLook(t *testing.T) {
	p := performancePolicy(t, `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 10, control: 10%, rounds: {min: 6, max: 9}, interims: [6, 9]}`)
	e := evidence("mission")
	tr := truth{heavyTailed, map[string]float64{"mission": 1.1}, 1, 10}
	var asked []int
	for need := Next(p, e); need.Gate != ""; need = Next(p, e) {
		asked = append(asked, need.Rounds)
		tr.measure(e, rand.New(rand.NewPCG(3, uint64(need.Rounds))), need.Rounds, 1)
	}
	if !slices.Equal(asked, []int{6, 9}) {
		t.Errorf("asked for %v rounds, want [6 9]", asked)
	}
	v := Judge(p, "test.yaml", e)
	if v.Reason != ReasonInconclusive || v.Comparisons[0].RoundsNeeded <= 9 || v.Comparisons[0].Detectable <= 0 {
		t.Errorf("got %s (%s): %s, needs %d rounds, detects %v", v.Outcome, v.Reason, v.Summary, v.Comparisons[0].RoundsNeeded, v.Comparisons[0].Detectable)
	}
}

// All looks of all attempts together spend no more than the policy's error rate,
// however often somebody asks for a rebench.
func TestScheduleNeverOverspends(t *testing.T) {
	gate := performancePolicy(t, `{target: {speedup: ">= +10%"}, confidence: 95%, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`).Rules[0].Gates.Performance
	for attempts := 1; attempts <= 12; attempts++ {
		t.Run(fmt.Sprint(attempts, " attempts"), func(t *testing.T) {
			var rounds []Round
			for a := 1; a <= attempts; a++ {
				for range 7 {
					rounds = append(rounds, Round{Attempt: a})
				}
			}
			looks, err := schedule(gate, rounds)
			if err != nil {
				t.Fatal(err)
			}
			sum, last := 0.0, 0
			for _, l := range looks {
				if l.rounds <= last {
					t.Errorf("look after %d rounds follows one after %d", l.rounds, last)
				}
				sum, last = sum+l.alpha, l.rounds
			}
			if sum > 0.025 {
				t.Errorf("the looks spend %v of 0.025", sum)
			}
			if attempts > 1 && last != len(rounds) {
				t.Errorf("the last look is after %d of %d rounds", last, len(rounds))
			}
		})
	}
}

// A rebench adds evidence to what is there: the verdict of the second attempt
// rests on all rounds.
func TestRebenchAddsRounds(t *testing.T) {
	p := performancePolicy(t, `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20, control: 10%, rounds: {min: 6, max: 6}, interims: [6]}`)
	e := evidence("mission")
	tr := truth{heavyTailed, map[string]float64{"mission": 1.108}, 1, 20}
	tr.measure(e, rand.New(rand.NewPCG(5, 5)), 6, 1)
	if v := Judge(p, "test.yaml", e); v.Reason != ReasonInconclusive {
		t.Fatalf("the first attempt is not inconclusive, but %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	tr.measure(e, rand.New(rand.NewPCG(6, 6)), 46, 2)
	v := Judge(p, "test.yaml", e)
	if v.Outcome != Pass || v.Measuring.Rounds != 46 || v.Measuring.Attempts != 2 {
		t.Errorf("got %s (%s) after %d rounds in %d attempts: %s", v.Outcome, v.Reason, v.Measuring.Rounds, v.Measuring.Attempts, v.Summary)
	}
}
