package bisect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// history is commits with a known truth.
type history struct {
	speeds []float64 // of each commit
	codes  []string  // machine code; "" means one of its own
	broken map[int]bool
	wrong  map[int]string
	noise  float64 // of a round, of the logarithm
	rng    *rand.Rand

	rounds, builds int
}

func (h *history) Build(_ context.Context, i int) (Built, error) {
	h.builds++
	if h.broken[i] {
		return Built{Skip: "it does not build"}, nil
	}
	code := fmt.Sprint(i)
	if h.codes != nil && h.codes[i] != "" {
		code = h.codes[i]
	}
	return Built{Same: code, IsGood: code == "good"}, nil
}

func (h *history) Check(_ context.Context, i int) (string, error) { return h.wrong[i], nil }

func (h *history) Round(_ context.Context, i int) (float64, string, error) {
	h.rounds++
	return h.speeds[i] * math.Exp(h.noise*h.rng.NormFloat64()), "", nil
}

// stepped is n commits of which those from the first bad one on have a speed.
func stepped(n, first int, speed, noise float64, seed uint64) *history {
	h := &history{noise: noise, rng: rand.New(rand.NewPCG(seed, 7))}
	for i := range n {
		at := 1.0
		if i >= first {
			at = speed
		}
		h.speeds = append(h.speeds, at)
	}
	return h
}

// A true step of -3 % among 64 commits is found in 95 of 100 searches, with the noise between rounds that GPUs and CPUs show.
func TestFindsTheStep(t *testing.T) {
	for _, noise := range []float64{0.003, 0.01, 0.02} {
		const searches = 100
		right, unsure, rounds := 0, 0, 0
		for seed := range uint64(searches) {
			first := int(seed*37) % 64
			h := stepped(64, first, 0.97, noise, seed)
			r, err := Search(t.Context(), 64, h, Accuracy{})
			if err != nil && !errors.Is(err, ErrNotWorse) {
				t.Fatal(err)
			}
			if err == nil && r.First == first && r.Last == first-1 {
				right++
			}
			if r.Unsure() {
				unsure++
			}
			rounds += h.rounds
		}
		t.Logf("noise of %.1f %%: %d of %d right, %d not proven, %.0f rounds a search", 100*noise, right, searches, unsure, float64(rounds)/searches)
		if right < 95 {
			t.Errorf("noise of %.1f %%: only %d of %d searches found the commit", 100*noise, right, searches)
		}
	}
}

// Where nothing is slower, nothing is blamed.
func TestBlamesNobody(t *testing.T) {
	blamed := 0
	for seed := range uint64(200) {
		if _, err := Search(t.Context(), 16, stepped(16, 16, 1, 0.01, seed), Accuracy{MaxRounds: 20}); err == nil {
			blamed++
		} else if !errors.Is(err, ErrNotWorse) {
			t.Fatal(err)
		}
	}
	if blamed > 10 {
		t.Errorf("%d of 200 searches blamed a commit", blamed)
	}
}

// Commits with known machine code are not measured, and those that do not build are passed over.
func TestSkipsWhatItKnows(t *testing.T) {
	h := stepped(9, 6, 0.9, 0.003, 1)
	h.codes = []string{"good", "good", "good", "good", "good", "x", "y", "y", "y"}
	r, err := Search(t.Context(), 9, h, Accuracy{})
	if err != nil || r.First != 6 || r.Last != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	measured := 0
	for _, s := range r.Steps {
		if s.Rounds > 0 {
			measured++
		}
		if s.SameAs != nil && s.Rounds > 0 {
			t.Errorf("commit %d was measured, and its code was known", s.Commit)
		}
	}
	if measured != 2 { // the bad commit, and the one before it
		t.Errorf("%d commits were measured: %+v", measured, r.Steps)
	}
}

func TestCommitsThatDoNotBuild(t *testing.T) {
	h := stepped(10, 5, 0.9, 0.003, 1)
	h.broken = map[int]bool{4: true, 5: true, 6: true}
	r, err := Search(t.Context(), 10, h, Accuracy{})
	if err != nil || r.Last != 3 || r.First != 7 || fmt.Sprint(r.Between()) != "[4 5 6]" {
		t.Fatalf("%+v between %v, %v", r, r.Between(), err)
	}
	h.broken[9] = true
	if _, err := Search(t.Context(), 10, h, Accuracy{}); err == nil {
		t.Error("a bad commit that does not build was searched")
	}
}

func TestFindsTheWrongCommit(t *testing.T) {
	h := stepped(20, 20, 1, 0.003, 1)
	h.wrong = map[int]string{}
	for i := 13; i < 20; i++ {
		h.wrong[i] = "two elements are wrong"
	}
	r, err := Search(t.Context(), 20, h, Accuracy{})
	if err != nil || r.Kind != Wrong || r.First != 13 || r.Last != 12 || h.rounds != 0 {
		t.Fatalf("%+v, %v after %d rounds", r, err, h.rounds)
	}
}

// A commit that was wrong for a while hides its speed; the commits around it decide.
func TestWrongInBetween(t *testing.T) {
	h := stepped(10, 7, 0.9, 0.003, 1)
	h.wrong = map[int]string{4: "wrong", 5: "wrong"}
	r, err := Search(t.Context(), 10, h, Accuracy{})
	if err != nil || r.Kind != Slower || r.First != 7 || r.Last != 6 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// One commit is the smallest range.
func TestOneCommit(t *testing.T) {
	r, err := Search(t.Context(), 1, stepped(1, 0, 0.95, 0.005, 3), Accuracy{})
	if err != nil || r.First != 0 || r.Last != -1 {
		t.Fatalf("%+v, %v", r, err)
	}
}
