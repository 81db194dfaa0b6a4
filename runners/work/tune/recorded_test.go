package tune

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded has searches on a GPU: NAME-truth.jsonl is an exhaustive search, NAME-search.jsonl is one
// with the default proposer in the same space.
const recorded = "../../backend/cuda/testdata/h200/tune"

// A recording is the exhaustive truth about a space.
type recording struct {
	name    string
	truth   *Log
	values  map[string]float64 // mean log speedup over the incumbent, of candidates within the guards
	seconds float64            // of measuring every candidate in all rounds
}

func readRecordings(t *testing.T) []recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(recorded, "*-truth.jsonl"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	var all []recording
	for _, file := range files {
		log, err := ReadLog(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(file), "-truth.jsonl"), truth: log, values: map[string]float64{log.Header.Space.ID(parseName(log.Header.Space.Start)): 0}}
		r.seconds = secondsOf(log)
		sums, counts, usable := map[string]float64{}, map[string]int{}, map[string]int{}
		for _, round := range log.rounds {
			for id, timed := range round {
				counts[id]++
				if v := timed.value(log.Header); !math.IsNaN(v) { // a round may be disturbed
					sums[id] += v
					usable[id]++
				}
			}
		}
		for id, n := range counts {
			if n != log.Header.MaxRounds {
				t.Errorf("%s: %s was in %d rounds of %d: the truth has all of them", r.name, id, n, log.Header.MaxRounds)
			}
			if within(log, id) {
				r.values[id] = sums[id] / float64(usable[id])
			}
		}
		if !log.Header.Exhaustive || !strings.Contains(log.Header.Device, "H200") || len(counts) < 3 {
			t.Errorf("%s: exhaustive %v on %s with %d candidates", r.name, log.Header.Exhaustive, log.Header.Device, len(counts))
		}
		all = append(all, r)
	}
	return all
}

// within reports whether a candidate is as fast as the policy's guards ask for, on average.
func within(log *Log, id string) bool {
	for shape, limit := range log.Header.Guards {
		sum, n := 0.0, 0
		for _, round := range log.rounds {
			if ratio, ok := round[id].Speedups[shape]; ok {
				sum += math.Log(ratio)
				n++
			}
		}
		if n == 0 || sum/float64(n) < math.Log(limit) {
			return false
		}
	}
	return true
}

// secondsOf returns the seconds of measuring in a log, up to the moment when a winner goes to the gate.
func secondsOf(log *Log) (seconds float64) {
	for _, c := range log.checks {
		seconds += c.Seconds
	}
	for _, round := range log.rounds {
		for _, timed := range round {
			seconds += timed.Seconds
		}
	}
	return seconds
}

func (r *recording) best() string {
	best := ""
	for id, v := range r.values {
		if best == "" || v > r.values[best] {
			best = id
		}
	}
	return best
}

// behind is how much slower a candidate is than the best, as a share; NaN if a guard keeps it out.
func (r *recording) behind(id string) float64 {
	value, ok := r.values[id]
	if !ok {
		return math.NaN()
	}
	return -math.Expm1(value - r.values[r.best()])
}

// live returns the winner of the recorded search, and the seconds until this winner goes to the gate.
func (r *recording) live(t *testing.T) (winner string, seconds float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, r.name+"-search.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), `{"attempt":`)
	log, _, err := parseLog(r.name, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := parseLog(r.name, text)
	if err != nil {
		t.Fatal(err)
	}
	if log.Header.Files != r.truth.Header.Files || log.Header.Exhaustive {
		t.Errorf("%s: the search and the truth are about different files", r.name)
	}
	seconds = secondsOf(log)
	for _, c := range log.sanitized {
		seconds += c.Seconds
	}
	if len(whole.attempts) == 0 { // nothing is better than the incumbent
		return log.Header.Space.ID(parseName(log.Header.Space.Start)), seconds
	}
	return whole.attempts[0].ID, seconds
}

// TestRecordedSearches replays every exhaustive recording with each built-in proposer, and reads the recorded
// search. Each of them finds a candidate within 1 % of the best, in at most a third of the time of the
// exhaustive search. docs/tune.md says so.
func TestRecordedSearches(t *testing.T) {
	const seeds = 10
	for _, r := range readRecordings(t) {
		check := func(who, id string, seconds float64) {
			share := seconds / r.seconds
			if behind := r.behind(id); !(behind <= 0.01) || share > 1.0/3 {
				t.Errorf("%s: %s finds %s, %.2f %% behind the best, in %.0f %% of the time; want 1 %% and a third", r.name, who, id, 100*behind, 100*share)
			}
		}
		if _, err := os.Stat(filepath.Join(recorded, r.name+"-search.jsonl")); err == nil {
			winner, seconds := r.live(t)
			check("the search", winner, seconds)
		}
		for _, name := range Proposers() {
			for seed := range uint64(seeds) {
				replay := NewReplay(r.truth)
				result, err := newSearch(t, MemoryLog(replay.Header(name, seed+1)), replay).Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				check(fmt.Sprintf("%s with seed %d", name, seed+1), result.Elite[0], result.Seconds)
			}
		}
	}
}
