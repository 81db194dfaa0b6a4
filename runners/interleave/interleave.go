// Package interleave takes one round's samples of one shape: baseline, candidate
// and a second copy of the baseline in mirrored blocks of random order, on
// inputs that no launch has seen before. It is the measuring protocol, written
// once; what a side is and how it is run is the bench's affair. It keeps no
// clock and judges nothing.
package interleave

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A Bench holds the sides of a round on one shape, each in an address space of
// its own, which none of the others and no input to come is in.
type Bench interface {
	// Draw gives every side that is there the same inputs, one launch's for each
	// seed, and poisons the outputs.
	Draw(dist tensor.Distribution, seeds []uint64) error
	// Time runs one side once on each of the first so many inputs of the last draw.
	Time(side rune, launches int) (Times, error)
	// TimeKept is Time for the candidate with whatever state its earlier launches
	// left; ok is false where it keeps none.
	TimeKept(launches int) (t Times, ok bool, err error)
	// Compare holds what the candidate wrote since the last draw against what the
	// baseline wrote, launch by launch, and everything else that the candidate
	// could have written against what Draw left there.
	Compare(launches int) ([]Difference, error)
	// Keep puts the candidate's output of one launch of the last draw aside.
	Keep(launch int) (Kept, error)
	// Throttled tells whether something holds the device back right now.
	Throttled() bool
}

// Times is how long a sample took, all its launches together.
type Times struct {
	Device time.Duration // by the clock that is judged
	Wall   time.Duration // by the judge's own
}

// A Difference is how far the candidate's output of one launch is from the
// baseline's.
type Difference struct {
	Same   bool // bit for bit
	Errors gates.Errors
}

// A Kept is an output that waits for its comparison with the reference.
type Kept interface {
	Check() (*gates.Errors, error)
	Drop()
}

// A Failed error is how the candidate itself went wrong: evidence, not a fault.
type Failed struct{ gates.Failure }

func (f *Failed) Error() string { return f.Detail }

// Failure tells the candidate's failure from all other errors.
func Failure(err error) (*gates.Failure, error) {
	if f, ok := errors.AsType[*Failed](err); ok {
		return &f.Failure, nil
	}
	return nil, err
}

// A Plan is how much is measured.
type Plan struct {
	Pairs      int
	Warm       time.Duration // of launching before the first sample of a side
	References int           // outputs, picked at random, that are compared with the reference
}

// A Run is one shape's series on its way.
type Run struct {
	bench  Bench
	series *gates.Series
	plan   Plan
	rng    *rand.Rand
	draws  map[string]int
}

// New prepares a series, whose shape, batch, seed and distributions are set.
func New(b Bench, s *gates.Series, plan Plan, rng *rand.Rand) *Run {
	return &Run{bench: b, series: s, plan: plan, rng: rng, draws: map[string]int{}}
}

// draw gives the sides fresh inputs.
func (r *Run) draw(phase string, dist tensor.Distribution, launches int) error {
	n := r.draws[phase]
	r.draws[phase]++
	seeds := make([]uint64, launches)
	for i := range seeds {
		seeds[i] = r.series.DrawSeed(phase, n, i)
	}
	if err := r.bench.Draw(dist, seeds); err != nil {
		return fmt.Errorf("drawing inputs for %s: %w", r.series.Shape, err)
	}
	return nil
}

// distribution is the n-th of the policy's, round and round.
func (r *Run) distribution(n int) tensor.Distribution {
	return tensor.Distribution(r.series.Distributions[n%len(r.series.Distributions)])
}

// fresh times one side on a draw of its own.
func (r *Run) fresh(phase string, side rune, launches int) (Times, error) {
	if err := r.draw(phase, r.distribution(r.draws[phase]), launches); err != nil {
		return Times{}, err
	}
	return r.bench.Time(side, launches)
}

// warm launches a side until the clocks have risen, once at least.
func (r *Run) warm(side rune) error {
	for spent, n := time.Duration(0), 0; n < 1 || spent < r.plan.Warm; n++ {
		t, err := r.fresh("warm", side, r.series.Batch)
		if err != nil {
			return err
		}
		spent += max(t.Wall, time.Microsecond)
	}
	return nil
}

func perLaunch(t time.Duration, launches int) float64 {
	return float64(t.Nanoseconds()) / float64(launches)
}

// Alone times the baseline before the candidate is there.
func (r *Run) Alone() error {
	if err := r.warm(gates.SideBaseline); err != nil {
		return err
	}
	for range max(r.plan.Pairs/4, 4) {
		t, err := r.fresh("solo", gates.SideBaseline, r.series.Batch)
		if err != nil {
			return err
		}
		r.series.Solo = append(r.series.Solo, perLaunch(t.Device, r.series.Batch))
		if r.bench.Throttled() {
			r.series.SoloSpoiled++
		}
	}
	return nil
}

// Measure takes the series. When the candidate fails the series ends with the
// last whole block, so that what was measured can still be read.
func (r *Run) Measure() error {
	for _, side := range []rune{gates.SideBaseline, gates.SideControl, gates.SideCandidate} {
		if err := r.warm(side); err != nil {
			return err
		}
	}
	if err := r.singles(); err != nil {
		return err
	}
	witness := newWitness(r)
	defer witness.drop()
	blocks := runners.Blocks(r.rng, r.plan.Pairs)
	for k, block := range blocks {
		whole := len(r.series.Nanos)
		if err := r.block(witness, k, block); err != nil {
			r.series.Nanos, r.series.Wall = r.series.Nanos[:whole], r.series.Wall[:whole]
			return err
		}
		r.series.Order = strings.Join(blocks[:k+1], " ")
		if r.bench.Throttled() {
			for i := whole; i < len(r.series.Nanos); i++ {
				r.series.Spoiled = append(r.series.Spoiled, i)
			}
		}
	}
	if err := r.kept(); err != nil {
		return err
	}
	return witness.check()
}

// block is one block's two halves, each on inputs of its own.
func (r *Run) block(w *witness, k int, block string) error {
	for half := range 2 {
		if err := r.draw("timed", r.distribution(k), r.series.Batch); err != nil {
			return err
		}
		for _, side := range block[half*len(block)/2 : (half+1)*len(block)/2] {
			t, err := r.bench.Time(side, r.series.Batch)
			if err != nil {
				return err
			}
			r.series.Nanos = append(r.series.Nanos, perLaunch(t.Device, r.series.Batch))
			r.series.Wall = append(r.series.Wall, perLaunch(t.Wall, r.series.Batch))
		}
		if err := w.see(r.distribution(k)); err != nil {
			return err
		}
	}
	return nil
}

// singles times launches that stand alone, turn and turn about, where a sample is
// a batch: a launch that does the work of the others shows here.
func (r *Run) singles() error {
	if r.series.Batch == 1 {
		return nil
	}
	s := &gates.Singles{}
	for range max(r.plan.Pairs/4, 4) {
		if err := r.draw("single", r.distribution(r.draws["single"]), 1); err != nil {
			return err
		}
		for _, side := range []struct {
			letter rune
			times  *[]float64
		}{{gates.SideBaseline, &s.Baseline}, {gates.SideCandidate, &s.Candidate}} {
			t, err := r.bench.Time(side.letter, 1)
			if err != nil {
				return err
			}
			*side.times = append(*side.times, perLaunch(t.Device, 1))
		}
	}
	r.series.Single = s
	return nil
}

// kept times the candidate with the state that it left itself, on fresh inputs.
func (r *Run) kept() error {
	for range max(r.plan.Pairs/4, 4) {
		if err := r.draw("kept", r.distribution(r.draws["kept"]), r.series.Batch); err != nil {
			return err
		}
		t, ok, err := r.bench.TimeKept(r.series.Batch)
		if err != nil || !ok {
			return err
		}
		r.series.Kept = append(r.series.Kept, perLaunch(t.Device, r.series.Batch))
	}
	return nil
}
