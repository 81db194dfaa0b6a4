package tune

import "github.com/kernelgate/kernelgate/gates"

// state is what a proposer may know now.
func (s *Search) state() State {
	state := State{Space: s.space, Left: s.left(), Seconds: s.seconds, Budget: s.Log.Header.Budget, Elite: s.race.Elite(elite), Tried: []Tried{}}
	for _, t := range s.snapshot() {
		state.Tried = append(state.Tried, t.public())
	}
	return state
}

// public is the candidate without anything that tells about secret cases or inputs: a gate that runs
// the kernel names them in its findings.
func (t Tried) public() Tried {
	if t.Status == Failed && t.Gate != gates.GateBuild && t.Gate != gates.GatePTXAS {
		t.Why, t.Details = map[gates.Gate]string{
			gates.GateCorrectness: "the output is wrong, or not the same in every launch",
			gates.GateSanitize:    "a sanitizer found a defect",
			gates.GatePerformance: "it failed, or its output was wrong, while it was timed",
		}[t.Gate], nil
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
		if r, ok := at[t.ID]; ok && (t.Status == Racing || t.Status == Slower || t.Status == Retired) {
			now.Speedup, now.Rounds = &r.Speedup, r.Rounds
		}
		all = append(all, now)
	}
	return all
}
