package tune

import (
	"strings"
	"testing"
)

// TestScreenLeavesFew checks that all points are screened, and that only the best of them are raced and compared.
func TestScreenLeavesFew(t *testing.T) {
	lab := newFakeLab(testSpace(), testSpeed)
	r := runSearch(t, "grid", lab)
	if n := counted1(lab, "screen "); n != 47 {
		t.Errorf("%d points were screened, want all 47 except the incumbent", n)
	}
	raced := 0
	for _, c := range r.Tried[1:] {
		if c.Rounds > 0 {
			raced++
		} else if c.Status != Behind || c.Speedup == nil {
			t.Errorf("%s was not raced, and is %q with speedup %v", c.ID, c.Status, c.Speedup)
		}
	}
	if raced < minRacers || raced > maxRacers || counted1(lab, "check") != 1 {
		t.Errorf("%d were raced and %d compared with the reference; want at least %d, and one", raced, counted1(lab, "check"), minRacers)
	}
}

// TestScreenNoise checks that everything is raced that the screen cannot tell from the best.
func TestScreenNoise(t *testing.T) {
	lab := newFakeLab(testSpace(), func(c Candidate) float64 {
		if c.Variant == "two" {
			return 0.2 // 24 points that are equally fast
		}
		return 0.01
	})
	r := runSearch(t, "grid", lab)
	raced := 0
	for _, c := range r.Tried[1:] {
		if c.Variant == "two" && c.Status != Behind {
			raced++
		}
	}
	if raced < 20 {
		t.Errorf("%d of 24 equal candidates were raced", raced)
	}
}

// TestDifferingOutputs checks that a candidate whose outputs are not the incumbent's is raced last, and that it may win if all
// others fail: the incumbent may be wrong.
func TestDifferingOutputs(t *testing.T) {
	lab := newFakeLab(testSpace(), testSpeed)
	lab.faults = map[string]map[string]int{testBest: {"differs": 1}}
	r := runSearch(t, "grid", lab)
	if r.Winner == r.Header.Space.ID(parseName(testBest)) || r.Winner == "" || status(r, testBest) != Behind {
		t.Errorf("%q won, and the one that differs is %q", r.Winner, status(r, testBest))
	}
	for _, c := range testHeader("grid").all() {
		if name := r.Header.Space.Short(c); name != testBest && lab.faults[name] == nil {
			lab.faults[name] = map[string]int{"check": 1}
		}
	}
	again := newFakeLab(testSpace(), testSpeed)
	again.faults = lab.faults
	if r = runSearch(t, "grid", again); r.Winner != r.Header.Space.ID(parseName(testBest)) {
		t.Errorf("%q won, and only the one that differs is right: %s", r.Winner, r.Conclusion())
	}
}

// all are the points of a header's space.
func (h Header) all() []Candidate {
	var all []Candidate
	for _, v := range h.Space.Variants {
		all = append(all, combine(Candidate{Variant: v}, h.Space.Toggles, 1000)...)
	}
	return all
}

// TestBelowGoal checks that a search says that its best is below the policy's goal before it asks the gate.
func TestBelowGoal(t *testing.T) {
	for goal, want := range map[float64]bool{1.5: true, 1.1: false} {
		h := testHeader("grid")
		h.Goals = map[string]float64{"mission": goal}
		lab := newFakeLab(testSpace(), testSpeed)
		r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		below := r.Below != "" && len(r.Confirmed) == 0 && r.Exit() == 1 && counted1(lab, "check") == 0 && strings.Contains(r.Conclusion(), "below the policy's goal of +50")
		if below != want || !want && r.Winner == "" {
			t.Errorf("goal %v: %q, winner %q, exit %d: %s", goal, r.Below, r.Winner, r.Exit(), r.Conclusion())
		}
	}
}

// TestNoGate checks that a search can end with its race.
func TestNoGate(t *testing.T) {
	h := testHeader("grid")
	h.NoGate = true
	lab := newFakeLab(testSpace(), testSpeed)
	r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
	if err != nil || r.Winner != "" || r.Exit() != 0 || counted1(lab, "confirm") != 0 || !strings.HasPrefix(r.Conclusion(), testBest+" is the fastest. ") {
		t.Errorf("%v, winner %q, exit %d: %s", err, r.Winner, r.Exit(), r.Conclusion())
	}
}
