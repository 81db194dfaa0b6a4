package tune

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// killed runs a search in parts: each part ends after a random number of results, and the log loses
// a random part of what was not on the disk yet: the last line.
func killed(t *testing.T, proposer string, seed uint64) (*Result, *fakeLab, int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "search")
	rng := rand.New(rand.NewPCG(seed, 9))
	lab := newFakeLab(testSpace(), testSpeed)
	log, err := CreateLog(dir, testHeader(proposer))
	if err != nil {
		t.Fatal(err)
	}
	for parts := 1; ; parts++ {
		lab.round, lab.stop = -1, 1+rng.IntN(35)
		if parts > 40 {
			lab.stop = 0
		}
		r, err := newSearch(t, log, lab).Run(t.Context())
		log.Close()
		if err == nil {
			return r, lab, parts
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		// A line that was being written is torn.
		name := filepath.Join(dir, LogFile)
		torn := `{"round":{"id":"two,FAST=1","round":3,"speedups":{"mission":1.5`
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(torn[:rng.IntN(len(torn))])
		f.Close()
		if log, err = OpenLog(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResume kills a search at random moments, again and again: it ends with the same winner, and
// nothing is compiled or measured twice.
func TestResume(t *testing.T) {
	total := 0
	for _, proposer := range []string{"genetic", "grid"} {
		want := runSearch(t, proposer, newFakeLab(testSpace(), testSpeed))
		kills := 0
		for seed := range uint64(6) {
			r, lab, parts := killed(t, proposer, seed)
			kills += parts - 1
			if r.Winner != want.Winner || len(r.Tried) != len(want.Tried) || math.Abs(r.Seconds-want.Seconds) > 1e-9 || fmt.Sprint(r.Elite) != fmt.Sprint(want.Elite) {
				t.Errorf("%s, killed %d times: winner %q after %d candidates and %.2f s, want %q after %d and %.2f s", proposer, parts-1, r.Winner, len(r.Tried), r.Seconds, want.Winner, len(want.Tried), want.Seconds)
			}
			for what, n := range lab.calls {
				if n > 1 {
					t.Errorf("%s: %s was done %d times", proposer, what, n)
				}
			}
		}
		total += kills
	}
	if total < 50 {
		t.Errorf("the searches were killed only %d times", total)
	}
}

// TestCutLog cuts the log of a whole search at random bytes: what is left is a log to go on from.
func TestCutLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "search")
	log, err := CreateLog(dir, testHeader("local"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := newSearch(t, log, newFakeLab(testSpace(), testSpeed)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	name := filepath.Join(dir, LogFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	header := strings.IndexByte(string(text), '\n') + 1
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		at := header + rng.IntN(len(text)-header)
		log, whole, err := parseLog(name, text[:at])
		if err != nil || whole > at || whole < header {
			t.Fatalf("cut at %d: %d bytes are whole, %v", at, whole, err)
		}
		r, err := newSearch(t, log, newFakeLab(testSpace(), testSpeed)).Run(t.Context())
		if err != nil || r.Winner != want.Winner || r.Seconds != want.Seconds {
			t.Errorf("cut at byte %d: winner %q after %v s, want %q after %v s (%v)", at, r.Winner, r.Seconds, want.Winner, want.Seconds, err)
		}
	}
	if err := os.WriteFile(name, text[:header-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir); err == nil || !strings.Contains(err.Error(), "the log is empty") {
		t.Errorf("a log without a header gives %v", err)
	}
}
