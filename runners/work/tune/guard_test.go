package tune

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// unevenLab is a lab in which candidates with FAST=1 are slower than the incumbent on the shape small.
type unevenLab struct{ *fakeLab }

func (l unevenLab) Round(ctx context.Context, id string, c Candidate) (Timed, error) {
	timed, err := l.fakeLab.Round(ctx, id, c)
	if timed.Speedups != nil && l.space.settings(c)["FAST"] == 1 {
		timed.Speedups["small"], timed.Speedups["mission"] = 0.93*timed.Speedups["small"]/math.Exp(l.speed(c)), 1.2*timed.Speedups["mission"]
	}
	return timed, err
}

// TestGuard checks that a candidate leaves the race if the policy's guard would defer it, and that the gate
// never judges this candidate.
func TestGuard(t *testing.T) {
	for _, proposer := range Proposers() {
		h := testHeader(proposer)
		h.Guards = map[string]float64{"small": 0.98}
		lab := unevenLab{newFakeLab(testSpace(), testSpeed)}
		r, err := newSearch(t, MemoryLog(h), lab).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		winner := r.Find(r.Winner)
		if winner == nil || h.Space.settings(winner.Candidate)["FAST"] != 0 || counted1(lab.fakeLab, "confirm ") != 1 {
			t.Errorf("%s: %q won after %d verdicts: %s", proposer, r.Winner, counted1(lab.fakeLab, "confirm "), r.Report(ReportOptions{}))
		}
		refused := 0
		for _, c := range r.Tried {
			if c.Status == Failed && c.Gate == gates.GatePerformance && strings.Contains(c.Why, "on small, proven in ") && strings.Contains(c.Why, "the policy asks for at least −2") {
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("%s: no candidate was refused by the guard", proposer)
		}
	}
	// Without a guard, or in an exhaustive search, no candidate is refused.
	h := testHeader("grid")
	h.Guards, h.Exhaustive, h.MaxRounds = map[string]float64{"small": 0.98}, true, 6
	r, err := (&Search{Log: MemoryLog(h), Proposer: Exhaustive(), Lab: unevenLab{newFakeLab(testSpace(), testSpeed)}}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Tried {
		if c.Status == Failed {
			t.Errorf("the exhaustive search refuses %s: %s", c.ID, c.Why)
		}
	}
}

// TestGuardErrsSeldom checks that a candidate at the limit is hardly ever refused.
func TestGuardErrsSeldom(t *testing.T) {
	const searches = 100
	wrong := 0
	for seed := range uint64(searches) {
		l := newLane(1, seed)
		l.truth[0] = math.Log(0.98)
		l.drift = 0 // a pair is measured together
		race, err := NewRace(RaceOptions{Epsilon: 0.01, Delta: 0.05, Arms: 1, MaxRounds: 20})
		if err != nil {
			t.Fatal(err)
		}
		g := newGuard(map[string]float64{"small": 0.98}, RaceOptions{Delta: 0.05, Arms: 1, MaxRounds: 20}, race.plan)
		for round := range 20 {
			if g.refuse("a", map[string]float64{"small": math.Exp(l.measure(0, round))}) != nil {
				wrong++
				break
			}
		}
	}
	if rate := float64(wrong) / searches; rate > 0.05 {
		t.Errorf("a candidate at the limit was refused in %.3f of the races, want at most 0.05", rate)
	}
}

// TestGuardOnRecordings replays an exhaustive search with the guard of its policy. The search finds the best
// candidate that the guard allows.
func TestGuardOnRecordings(t *testing.T) {
	for _, r := range readRecordings(t) {
		if r.name != "stage6_fp8" {
			continue
		}
		r.truth.Header.Guards = map[string]float64{"long": 0.98}
		for id := range r.values {
			if _, raced := r.truth.rounds[0][id]; raced && !within(r.truth, id) {
				delete(r.values, id)
			}
		}
		for _, name := range Proposers() {
			replay := NewReplay(r.truth)
			result, err := newSearch(t, MemoryLog(replay.Header(name, 1)), replay).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			share := result.Seconds / r.seconds
			t.Logf("%s: %s of %d within the guard, %.2f %% behind the best of them, in %.0f %% of the time", name, result.name(result.Find(result.Elite[0])), len(r.values), 100*r.behind(result.Elite[0]), 100*share)
			if behind := r.behind(result.Elite[0]); !(behind <= 0.01) || share > 0.5 {
				t.Errorf("%s finds %s, %.2f %% behind the best, in %.0f %% of the time", name, result.Elite[0], 100*behind, 100*share)
			}
		}
	}
}
