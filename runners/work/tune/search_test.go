package tune

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// TestProposersFindTheBest checks that every built-in proposer finds a candidate within epsilon of
// the best, and that those that choose need fewer measurements than the grid.
func TestProposersFindTheBest(t *testing.T) {
	spent := map[string]int{}
	for _, name := range Proposers() {
		t.Run(name, func(t *testing.T) {
			lab := newFakeLab(testSpace(), testSpeed)
			r := runSearch(t, name, lab)
			best := testSpeed(parseName(testBest))
			winner := r.Find(r.Winner)
			if winner == nil {
				t.Fatalf("nobody won: %+v", r.Confirmed)
			}
			if regret := best - testSpeed(winner.Candidate); regret > 0.01 {
				t.Errorf("the winner %s is %.3f behind the best", winner.ID, regret)
			}
			if winner.Speedup == nil || math.Abs(*winner.Speedup-math.Expm1(testSpeed(winner.Candidate))) > 0.03 {
				t.Errorf("its speedup is %v, want %v", *winner.Speedup, math.Expm1(testSpeed(winner.Candidate)))
			}
			spent[name] = counted1(lab, "screen ")
			t.Logf("%d candidates, %d measurements, %.0f s", len(r.Tried)-1, spent[name], r.Seconds)
			for what, n := range lab.calls {
				if n > 1 {
					t.Errorf("%s was done %d times", what, n)
				}
			}
			seen := map[string]bool{}
			for _, c := range r.Tried {
				if seen[c.ID] {
					t.Errorf("%s was tried twice", c.ID)
				}
				seen[c.ID] = true
			}
		})
	}
	for _, name := range []string{"local", "genetic"} {
		if spent[name] >= spent["grid"] {
			t.Errorf("%s took %d measurements, no fewer than the grid's %d", name, spent[name], spent["grid"])
		}
	}
}

// TestOnlyMicroParameters checks that a space without a choice of structure is searched, too.
func TestOnlyMicroParameters(t *testing.T) {
	for _, name := range Proposers() {
		h := testHeader(name)
		h.Space.Variants, h.Space.Toggles = []string{"one"}, h.Space.Toggles[1:]
		r, err := newSearch(t, MemoryLog(h), newFakeLab(h.Space, testSpeed)).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if winner := r.Find(r.Winner); winner == nil || h.Space.Short(winner.Candidate) != "one,ROWS=4,STAGES=3" {
			t.Errorf("%s: %s", name, r.Report(ReportOptions{}))
		}
	}
}

// TestManyStructures checks that of many structures a sample is raced first, and that every variant is
// in it as the manifest has it.
func TestManyStructures(t *testing.T) {
	s := State{Space: testSpace(), Left: 1000, Tried: []Tried{{ID: "one,FAST=0,ROWS=1,STAGES=2"}}}
	for i := range s.Space.Toggles {
		s.Space.Toggles[i].Layer = structure
	}
	first := s.first(rngOf(1, s))
	if len(first) != maxStructures || s.Space.ID(first[0]) != "two,FAST=0,ROWS=1,STAGES=2" {
		t.Errorf("%d structures, the first is %s", len(first), s.Space.ID(first[0]))
	}
	s.Left = 5
	if first := s.first(rngOf(1, s)); len(first) != 5 {
		t.Errorf("%d structures, and 5 may be proposed", len(first))
	}
}

// TestExhaustive checks that an exhaustive search drops nobody.
func TestExhaustive(t *testing.T) {
	h := testHeader("grid")
	h.Exhaustive, h.MaxRounds = true, 5
	lab := newFakeLab(testSpace(), testSpeed)
	r, err := (&Search{Log: MemoryLog(h), Proposer: Exhaustive(), Lab: lab}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Of 48 points one is the incumbent.
	if n := counted1(lab, "round"); n != 47*5 {
		t.Errorf("%d measurements, want all 47 candidates in 5 rounds", n)
	}
	if r.Winner != "" || len(r.Confirmed) > 0 || r.Exit() != 0 || !strings.HasPrefix(r.Conclusion(), "The fastest of all that were measured is two,FAST=1,ROWS=4,STAGES=3. ") {
		t.Errorf("winner %q, exit %d: %s", r.Winner, r.Exit(), r.Conclusion())
	}
	if best := r.Find(r.Elite[0]); testSpeed(parseName(testBest))-testSpeed(best.Candidate) > 0.01 {
		t.Errorf("the best is %s", best.ID)
	}
}

// TestFaultyCandidatesNeverWin lets the fastest candidates fail in every possible way.
func TestFaultyCandidatesNeverWin(t *testing.T) {
	fast := map[string]string{
		"two,FAST=1,ROWS=4,STAGES=3": "confirm",  // it cheats: fast while it is raced, and the gate finds it suspicious
		"two,FAST=1,ROWS=2,STAGES=3": "check",    // wrong but fast
		"two,FAST=1,ROWS=2":          "screen",   // it crashes in the screen
		"two,FAST=1,ROWS=4":          "round",    // it crashes or hangs while it is timed
		"two,FAST=1,ROWS=4,STAGES=4": "sanitize", // it races
		"two,FAST=1,STAGES=3":        "build",
	}
	lab := newFakeLab(testSpace(), testSpeed)
	lab.faults = map[string]map[string]int{}
	for name, step := range fast {
		lab.faults[name] = map[string]int{step: 1}
	}
	r := runSearch(t, "grid", lab)
	if r.Winner == "" {
		t.Fatal("nobody won, although good candidates are left")
	}
	if winner := r.Header.Space.Short(r.Find(r.Winner).Candidate); fast[winner] != "" {
		t.Errorf("%s won, which fails at %s", winner, fast[winner])
	}
	for name, step := range fast {
		if (step == "sanitize" || step == "check") && status(r, name) != Failed {
			continue // it is not among the finalists
		}
		if got := status(r, name); got != Failed {
			t.Errorf("%s, which fails at %s, is %q", name, step, got)
		}
	}
	if len(r.Confirmed) < 2 || r.Confirmed[0].Outcome != gates.Defer {
		t.Errorf("the gate said %+v, want it to refuse the cheat first", r.Confirmed)
	}
}

// TestNothingBetter checks that the incumbent stays if it is the best, and that the gate is not even
// asked.
func TestNothingBetter(t *testing.T) {
	lab := newFakeLab(testSpace(), func(c Candidate) float64 {
		if c.Variant == "one" && len(c.Toggles) == 0 {
			return 0
		}
		return -0.05 + testSpeed(c) - testSpeed(parseName(testBest))
	})
	r := runSearch(t, "local", lab)
	if r.Winner != "" || len(r.Confirmed) != 0 || r.Elite[0] != r.Tried[0].ID {
		t.Errorf("winner %q, the gate said %+v, elite %v", r.Winner, r.Confirmed, r.Elite)
	}
}

// TestDuplicates checks that equal machine code is raced once.
func TestDuplicates(t *testing.T) {
	lab := newFakeLab(testSpace(), testSpeed)
	lab.faults = map[string]map[string]int{"two,FAST=1": {"same": 1}, "one,FAST=1": {"same": 1}}
	r := runSearch(t, "grid", lab)
	if status(r, "one,FAST=1") == Duplicate || status(r, "two,FAST=1") != Duplicate {
		t.Errorf("one,FAST=1 is %q and two,FAST=1 is %q; want only the second to be a duplicate", status(r, "one,FAST=1"), status(r, "two,FAST=1"))
	}
	if n := counted1(lab, "check two,FAST=1,ROWS=1,STAGES=2"); n != 0 {
		t.Error("a duplicate was checked")
	}
}

// TestBudget checks that a search ends when its measuring time is spent, and still has its winner
// confirmed.
func TestBudget(t *testing.T) {
	h := testHeader("grid")
	h.Budget = 30
	lab := newFakeLab(testSpace(), testSpeed)
	r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !r.Spent || r.Seconds > 60 || r.Winner == "" {
		t.Errorf("spent %v after %.0f s, winner %q", r.Spent, r.Seconds, r.Winner)
	}
	h.Budget, h.Candidates = 0, 9
	if r, err = newSearch(t, MemoryLog(h), newFakeLab(testSpace(), testSpeed)).Run(t.Context()); err != nil || len(r.Tried) != 10 {
		t.Errorf("%d candidates were tried, want 9 and the incumbent (%v)", len(r.Tried), err)
	}
}

// TestSecretsStaySecret checks that the state for a proposer says nothing about cases and seeds.
func TestSecretsStaySecret(t *testing.T) {
	lab := newFakeLab(testSpace(), testSpeed)
	lab.faults = map[string]map[string]int{testBest: {"check": 1}, "two,FAST=1,ROWS=2,STAGES=3": {"round": 1}, "two": {"build": 1}}
	search := newSearch(t, MemoryLog(testHeader("local")), lab)
	if _, err := search.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, c := range search.state().Tried {
		if c.Status != Failed {
			continue
		}
		failed++
		if text := fmt.Sprint(c.Why, c.Details); c.Why == "" || c.Gate != gates.GateBuild && (strings.Contains(text, "123456") || strings.Contains(text, "N=77")) {
			t.Errorf("the proposer is told %q", text)
		}
	}
	if failed != 3 {
		t.Errorf("%d candidates failed, want 3", failed)
	}
}

// TestKnownFailures checks that machine code that failed is not run again, by a later search.
func TestKnownFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results", FailuresFile)
	search := func(problem string) (*fakeLab, *Result) {
		t.Helper()
		lab := newFakeLab(testSpace(), testSpeed)
		lab.faults = map[string]map[string]int{testBest: {"check": 1}, "two,FAST=1,ROWS=2,STAGES=3": {"round": 1}}
		s := newSearch(t, MemoryLog(testHeader("local")), lab)
		var err error
		if s.Failures, err = OpenFailures(file, problem); err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return lab, r
	}
	first, _ := search("p")
	if counted1(first, "check "+testBest) != 1 {
		t.Fatal("the candidate was not checked")
	}
	// A search that was killed has left half a line.
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"problem":"p","dev`)
	f.Close()
	second, r := search("p")
	if counted1(second, "check "+testBest)+counted1(second, "round 0 two,FAST=1,ROWS=2,STAGES=3") != 0 {
		t.Error("known failures were run again")
	}
	for _, c := range r.Tried {
		if name := r.Header.Space.Short(c.Candidate); name == testBest && (c.Status != Failed || c.Why != "found by an earlier search: check refuses it") {
			t.Errorf("%s is %q: %q", name, c.Status, c.Why)
		}
	}
	if other, _ := search("another problem"); counted1(other, "check "+testBest) != 1 {
		t.Error("a failure at a different problem was taken for one at this")
	}
	if err := os.WriteFile(file, []byte("{}\nnonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFailures(file, "p"); err == nil || !strings.Contains(err.Error(), FailuresFile+":2: ") {
		t.Errorf("a broken file gives %v", err)
	}
}

// TestReplay tries strategies on the recorded measurements of an exhaustive search.
func TestReplay(t *testing.T) {
	h := testHeader("grid")
	h.Exhaustive = true
	truth := MemoryLog(h)
	if _, err := (&Search{Log: truth, Proposer: Exhaustive(), Lab: newFakeLab(testSpace(), testSpeed)}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	exhaustive := float64(47 * h.MaxRounds)
	for _, proposer := range Proposers() {
		replay := NewReplay(truth)
		r, err := newSearch(t, MemoryLog(replay.Header(proposer, 3)), replay).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !r.Replayed || r.Winner != "" || len(r.Confirmed) > 0 {
			t.Errorf("%s: a replay has confirmed %q", proposer, r.Winner)
		}
		best := r.Find(r.Elite[0])
		if regret := testSpeed(parseName(testBest)) - testSpeed(best.Candidate); regret > 0.01 || r.Seconds > exhaustive/2 {
			t.Errorf("%s found %s, %.3f behind the best, in %.0f of %.0f s", proposer, best.ID, regret, r.Seconds, exhaustive)
		}
	}
	// A candidate that the log does not have is refused by name.
	delete(truth.builds, "two,FAST=1,ROWS=1,STAGES=2")
	replay := NewReplay(truth)
	r, err := newSearch(t, MemoryLog(replay.Header("grid", 3)), replay).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status(r, "two,FAST=1") != Unknown {
		t.Errorf("a candidate that is not in the log is %q", status(r, "two,FAST=1"))
	}
}

// TestWorth checks what each toggle gained, all else being equal.
func TestWorth(t *testing.T) {
	r := runSearch(t, "grid", newFakeLab(testSpace(), testSpeed))
	found := map[string]float64{}
	for _, w := range r.Worth {
		found[fmt.Sprintf("%s %d %d", w.Toggle, w.From, w.To)] = math.Log1p(w.Gain)
	}
	for what, want := range map[string]float64{"FAST 0 1": 0.1, "ROWS 1 4": 0.05, "STAGES 2 3": 0.02, "STAGES 3 8": -0.1} {
		if got, ok := found[what]; !ok || math.Abs(got-want) > 0.006 {
			t.Errorf("%s: %v, want about %v (%v)", what, got, want, ok)
		}
	}
}

// A race between equals ends when it has taken as long as everything before it, unless the number of rounds was asked for.
func TestRaceOfEqualsEnds(t *testing.T) {
	equal := func(Candidate) float64 { return 0.2 }
	for _, rounds := range []int{defaultMaxRounds, defaultMaxRounds - 1} {
		h := testHeader("grid")
		h.MaxRounds, h.Epsilon = rounds, 1e-6
		h.Space.Variants, h.Space.Toggles = []string{"one"}, h.Space.Toggles[1:]
		lab := newFakeLab(h.Space, equal)
		r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked := rounds != defaultMaxRounds
		// Without a number, 11 candidates are measured in 8 rounds.
		if n := counted1(lab, "round"); asked != (n > 120) || r.Long == asked || strings.Contains(r.Conclusion(), "--max-rounds measures more") == asked {
			t.Errorf("at most %d rounds: %d measurements; %s", rounds, n, r.Conclusion())
		}
	}
}
