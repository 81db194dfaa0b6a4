package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// noisy is a machine whose rounds differ by 0.3 % and whose samples differ by 1 %, with heavy tails. Each
// side of a run also has an offset of 0.03 % that more rounds do not average out.
var noisy = simulate.Model{Name: "noisy", Run: func(rng *rand.Rand) func(int) simulate.DrawFactor {
	off := map[rune]float64{simulate.Baseline: 0.0003 * rng.NormFloat64(), simulate.Candidate: 0.0003 * rng.NormFloat64(), simulate.Control: 0.0003 * rng.NormFloat64()}
	return func(int) simulate.DrawFactor {
		round := map[rune]float64{simulate.Baseline: 0.002 * rng.NormFloat64(), simulate.Candidate: 0.002 * rng.NormFloat64(), simulate.Control: 0.002 * rng.NormFloat64()}
		return func(side rune, _ int) float64 {
			x := 0.01 * rng.NormFloat64()
			if rng.IntN(50) == 0 {
				x += 0.1 * rng.ExpFloat64()
			}
			return off[side] + round[side] + x
		}
	}
}}

// simulated is the evidence of a night in which every shape has its true speed.
func simulated(rng *rand.Rand, truths []float64, rounds int) *gates.Evidence {
	e := &gates.Evidence{
		Baseline: &gates.Build{OK: true}, Candidate: &gates.Build{OK: true, Compiler: "nvcc"}, Device: gates.Device{Kind: "gpu", Name: "L4", Arch: "sm_89"},
		Performance: &gates.Performance{Rounds: make([]gates.Round, rounds)},
	}
	for i, truth := range truths {
		name := fmt.Sprintf("shape%d", i)
		e.Shapes = append(e.Shapes, gates.Shape{Name: name, Dims: "N=1"})
		next := simulate.Machine{Model: noisy, Ratio: truth, Blocks: 10}.Start(rng)
		for r := range rounds {
			s := next()
			e.Performance.Rounds[r].Series = append(e.Performance.Rounds[r].Series, gates.Series{Shape: name, Order: s.Order, Nanos: s.Nanos, Seed: 1})
		}
	}
	return e
}

// A month of nights with 20 shapes gives no false alarm. Somebody changes the sources every day, so that no
// slowdown counts as noise. A kernel that is slower by exactly the allowed 1 % gives no alarm, either. A
// slowdown of 4 % at one of the shapes is found on the first night, and stays one regression.
func TestSimulatedMonth(t *testing.T) {
	const shapes, nights, rounds, analyses = 20, 30, 8, 3
	for name, c := range map[string]struct {
		truth, one     float64
		nights, alarms int
	}{
		"equal":             {1, 1, nights, 0},
		"at the limit":      {0.99, 0.99, nights, 0},
		"slower at a shape": {1, 0.96, 5, 1},
		"slower":            {0.96, 0.96, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			truths := make([]float64, shapes)
			for i := range truths {
				truths[i] = c.truth
			}
			truths[shapes-1] = c.one
			s, alarms := &State{}, 0
			for n := range c.nights {
				l := Look{Due: time.Date(2026, 5, 1+n, 2, 0, 0, 0, time.UTC), Base: "b", Head: fmt.Sprint(n), Slower: 0.01, Cell: Cell{Sources: fmt.Sprint(n)}}
				l, ok := l.Measure(simulated(rng, truths, rounds), analyses)
				if !ok || len(l.Shapes) != shapes {
					t.Fatalf("night %d: %d shapes, %v", n, len(l.Shapes), ok)
				}
				before := s.Regression
				s.Apply(uint64(n+1), Looked{Look: l})
				if s.Regression != nil && before == nil {
					alarms++
					if c.alarms == 0 {
						t.Errorf("night %d: %+v", n, l.Slowdowns())
					}
				}
				if n == 0 && alarms != c.alarms {
					t.Errorf("the first night has %d alarms, want %d: %+v", alarms, c.alarms, l.Worst())
				}
			}
			if alarms != c.alarms {
				t.Errorf("%d alarms, want %d", alarms, c.alarms)
			}
		})
	}
}

// The upper bounds of all shapes together are wrong at most as often as the error rate allows. The test uses
// a speed at the limit, where every error counts.
func TestErrorRateAtTheLimit(t *testing.T) {
	const runs, alpha = 300, 0.05
	rng := rand.New(rand.NewPCG(3, 9))
	wrong := 0
	for range runs {
		for _, p := range gates.PairedSpeeds(simulated(rng, []float64{0.99, 0.99, 0.99}, 8), alpha, alpha) {
			if p.Upper < 0.99 {
				wrong++
				break
			}
		}
	}
	if most := alpha*runs + 3*math.Sqrt(alpha*runs); float64(wrong) > most {
		t.Errorf("%d of %d runs have a wrong bound, want at most %.0f", wrong, runs, most)
	}
}

// Evidence that compares nothing gives no look.
func TestMeasureNothing(t *testing.T) {
	whole := simulated(rand.New(rand.NewPCG(1, 1)), []float64{1}, 6)
	for name, edit := range map[string]func(e *gates.Evidence){
		"a fault":         func(e *gates.Evidence) { e.Fault = "no GPU" },
		"a new kernel":    func(e *gates.Evidence) { e.Baseline = nil },
		"nothing built":   func(e *gates.Evidence) { e.Candidate = nil },
		"nothing timed":   func(e *gates.Evidence) { e.Performance = nil },
		"too few rounds":  func(e *gates.Evidence) { e.Performance = &gates.Performance{Rounds: e.Performance.Rounds[:5]} },
		"a secret size":   func(e *gates.Evidence) { e.Shapes = []gates.Shape{{Name: "shape0", Secret: true}} },
		"another's shape": func(e *gates.Evidence) { e.Shapes = []gates.Shape{{Name: "other"}} },
	} {
		e := *whole
		edit(&e)
		if l, ok := (Look{}).Measure(&e, 3); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
	same := *whole
	same.SameCode, same.Performance = true, nil
	if l, ok := (Look{Slower: 0.01}).Measure(&same, 3); !ok || l.Result() != Sound || l.Compiler != "nvcc" || l.Device != "L4" {
		t.Errorf("equal machine code: %+v, %v", l, ok)
	}
}
