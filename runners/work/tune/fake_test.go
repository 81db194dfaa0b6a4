package tune

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/work/arm"
)

// fakeLab is a lab whose candidates have known speeds. What it measures is a function of the
// candidate and the round, so that a search can be repeated.
type fakeLab struct {
	space  Space
	speed  func(Candidate) float64   // log speedup over the incumbent
	faults map[string]map[string]int // by short name: the step that refuses the candidate
	round  int

	mu    sync.Mutex
	calls map[string]int // how often each thing was done, over all parts of a search
	stop  int            // calls until the process is killed; 0 means never
}

var errKilled = fmt.Errorf("killed")

func newFakeLab(space Space, speed func(Candidate) float64) *fakeLab {
	return &fakeLab{space: space, speed: speed, round: -1, calls: map[string]int{}}
}

// count notes that something was done. A killed process does nothing more.
func (l *fakeLab) count(what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop > 0 {
		if l.stop--; l.stop == 0 {
			l.stop = -1
		}
	}
	if l.stop < 0 {
		return errKilled
	}
	l.calls[what]++
	return nil
}

func (l *fakeLab) refuse(step string, gate gates.Gate, c Candidate) *arm.Refusal {
	if l.faults[l.space.Short(c)][step] > 0 {
		return &arm.Refusal{Gate: gate, Text: step + " refuses it", Details: []string{"secret shape N=77, seed 123456"}}
	}
	return nil
}

func (l *fakeLab) Device() string { return "fake" }

func (l *fakeLab) Build(_ context.Context, id string, c Candidate) (Built, error) {
	if err := l.count("build " + id); err != nil {
		return Built{}, err
	}
	b := Built{ID: id, Same: id, Seconds: 0.5, Refusal: l.refuse("build", gates.GateBuild, c)}
	if n := l.faults[l.space.Short(c)]["same"]; n > 0 {
		b.Same = fmt.Sprint("code ", n)
	}
	b.Incumbent = id == l.space.ID(parseName(l.space.Start))
	return b, nil
}

func (l *fakeLab) Check(_ context.Context, id string, c Candidate) (Checked, error) {
	if err := l.count("check " + id); err != nil {
		return Checked{}, err
	}
	return Checked{Seconds: 0.25, Refusal: l.refuse("check", gates.GateCorrectness, c)}, nil
}

// Screen is one kill or none for all candidates: none of them is in the log before all are timed.
func (l *fakeLab) Screen(_ context.Context, ids []string, all []Candidate) ([]Screened, error) {
	if err := l.count(fmt.Sprintf("screens %v", ids)); err != nil {
		return nil, err
	}
	var out []Screened
	for i, id := range ids {
		l.calls["screen "+id]++
		s := Screened{Seconds: 0.5, Refusal: l.refuse("screen", gates.GatePerformance, all[i]), Differs: l.faults[l.space.Short(all[i])]["differs"] > 0}
		if s.Refusal == nil {
			h := fnv.New64a()
			h.Write([]byte(id))
			noise := 0.008 * rand.New(rand.NewPCG(h.Sum64(), 99)).NormFloat64()
			ratio := math.Exp(l.speed(all[i]) + noise)
			s.Speedups, s.Micros, s.Noise = map[string]float64{"mission": ratio, "small": ratio}, map[string]float64{"mission": 100 / ratio, "small": 10 / ratio}, 0.008
		}
		out = append(out, s)
	}
	return out, nil
}

func (l *fakeLab) Begin([]string, []Candidate) bool { l.round++; return true }

func (l *fakeLab) Round(_ context.Context, id string, c Candidate) (Timed, error) {
	if err := l.count(fmt.Sprintf("round %d %s", l.round, id)); err != nil {
		return Timed{}, err
	}
	if r := l.refuse("round", gates.GatePerformance, c); r != nil {
		return Timed{Refusal: r, Seconds: 1}, nil
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	noise := rand.New(rand.NewPCG(h.Sum64(), uint64(l.round)))
	drift := rand.New(rand.NewPCG(1, uint64(l.round)))
	ratio := math.Exp(l.speed(c) + 0.02*drift.NormFloat64() + 0.004*noise.NormFloat64())
	return Timed{Speedups: map[string]float64{"mission": ratio, "small": ratio}, Micros: map[string]float64{"mission": 100 / ratio, "small": 10 / ratio}, Seconds: 1}, nil
}

func (l *fakeLab) Sanitize(_ context.Context, id string, c Candidate) (Checked, error) {
	if err := l.count("sanitize " + id); err != nil {
		return Checked{}, err
	}
	return Checked{Seconds: 2, Refusal: l.refuse("sanitize", gates.GateSanitize, c)}, nil
}

func (l *fakeLab) Confirm(_ context.Context, id string, c Candidate, a Attempt) (Confirmed, error) {
	if err := l.count("confirm " + id); err != nil {
		return Confirmed{}, err
	}
	if l.faults[l.space.Short(c)]["confirm"] > 0 {
		return Confirmed{Outcome: gates.Defer, Reason: gates.ReasonSuspicious, Summary: "it keeps state"}, nil
	}
	if l.speed(c) <= 0 {
		return Confirmed{Outcome: gates.Defer, Reason: gates.ReasonTooSlow, Summary: "it is too slow"}, nil
	}
	return Confirmed{Outcome: gates.Pass, Summary: fmt.Sprintf("%+.0f %%", 100*math.Expm1(l.speed(c)))}, nil
}

func (l *fakeLab) Release(string) {}

// testSpace has two variants, a structure of two and micro parameters of 3×4 values.
func testSpace() Space {
	own := Settings{"FAST": 0, "ROWS": 1, "STAGES": 2}
	return Space{
		Kernel: "scale", Variants: []string{"one", "two"}, Start: "one",
		Own: map[string]Settings{"one": own, "two": own},
		Toggles: []Toggle{
			{Name: "FAST", Values: []int{0, 1}, Layer: structure},
			{Name: "ROWS", Values: []int{1, 2, 4}, Layer: micro},
			{Name: "STAGES", Values: []int{2, 3, 4, 8}, Layer: micro},
		},
	}
}

// testSpeed has its best at two,FAST=1,ROWS=4,STAGES=3.
func testSpeed(c Candidate) float64 {
	v := testSpaceValues(c)
	speed := -0.02 * math.Abs(float64(v["STAGES"])-3)
	speed += 0.02 + map[int]float64{1: 0, 2: 0.03, 4: 0.05}[v["ROWS"]] + 0.1*float64(v["FAST"])
	if c.Variant == "two" {
		speed += 0.05
	}
	return speed
}

func testSpaceValues(c Candidate) Settings {
	s := testSpace()
	return s.settings(c)
}

const testBest = "two,FAST=1,ROWS=4,STAGES=3"

func testHeader(proposer string) Header {
	return Header{Version: logVersion, Space: testSpace(), Shapes: []string{"mission", "small"}, Device: "fake", Proposer: proposer, Seed: 7, Candidates: 200, Epsilon: 0.01, MaxRounds: 24, Files: "f"}
}

func newSearch(t testing.TB, log *Log, lab Lab) *Search {
	t.Helper()
	p, err := NewProposer(log.Header.Proposer, log.Header.Seed)
	if err != nil {
		t.Fatal(err)
	}
	return &Search{Log: log, Proposer: p, Lab: lab}
}

func runSearch(t testing.TB, proposer string, lab *fakeLab) *Result {
	t.Helper()
	result, err := newSearch(t, MemoryLog(testHeader(proposer)), lab).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// status is that of a candidate by its short name.
func status(r *Result, name string) Status {
	i := slices.IndexFunc(r.Tried, func(t Tried) bool { return r.Header.Space.Short(t.Candidate) == name })
	if i < 0 {
		return ""
	}
	return r.Tried[i].Status
}

func counted1(l *fakeLab, prefix string) (n int) {
	for what, times := range l.calls {
		if strings.HasPrefix(what, prefix) {
			n += times
		}
	}
	return n
}
