package tune

import (
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
)

// state is what a proposer may know now.
func (s *Search) state() State {
	state := State{Space: s.space, Left: s.left(), Seconds: s.seconds, Budget: s.Log.Header.Budget, Elite: s.leaders(), Tried: []Tried{}}
	for _, t := range s.snapshot() {
		state.Tried = append(state.Tried, t.public())
	}
	return state
}

// public is the candidate without anything that tells about secret cases or inputs: a gate that runs
// the kernel names them in its findings.
func (t Tried) public() Tried {
	if t.Status == Failed && !t.Gate.Static() {
		t.Details = nil
		switch t.Gate {
		case gates.GateCorrectness:
			t.Why = "the output is wrong, or not the same in every launch"
		case gates.GatePerformance:
			t.Why = "it failed, or its output was wrong, while it was timed"
		default:
			t.Why = fmt.Sprintf("the %s gate refuses it", t.Gate)
		}
	}
	return t
}

// snapshot is all candidates with their places in the race.
func (s *Search) snapshot() []Tried {
	at := map[string]Standing{}
	for _, r := range s.race.Ranking() {
		at[r.Arm] = r
	}
	var all []Tried
	for _, t := range s.tried {
		now := *t
		if r, ok := at[t.ID]; ok && (t.Status == Racing || t.Status == Slower) {
			now.Speedup, now.Rounds = &r.Speedup, r.Rounds
		} else if t.screen != nil && t.Status == Behind {
			now.Speedup = new(math.Expm1(t.screen.value(s.Log.Header)))
		}
		all = append(all, now)
	}
	return all
}
