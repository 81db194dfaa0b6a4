// Package interleave takes one round's samples of one shape: baseline, candidate and a second copy
// of the baseline in mirrored blocks of random order, on inputs that no launch has seen before. It
// is the measuring protocol, written once for all backends. A [Bench] decides what a side is and
// how it runs. The package reads no clock itself and judges nothing.
package interleave

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// A Bench holds the sides of a round on one shape. Each side has its own address space, which
// contains none of the other sides and no future input.
type Bench interface {
	// Draw gives every side that exists the same inputs, those of one launch for each seed, and
	// poisons the outputs.
	Draw(dist distribution.Kind, seeds []uint64) error
	// Time runs one side once on each of the first inputs of the last draw, as many as launches.
	Time(side rune, launches int) (Times, error)
	// Single returns a bench for launches that run alone, in a series with batches of the given size.
	// A draw of it has the returned number of launches, and its Time is that of one of them. The
	// first of them, about as many as warm, only warm the code up. No code of the side can reach
	// the inputs of the timed launch before all earlier launches of the side have finished with
	// their outputs in place.
	Single(batch, warm int) (b Bench, launches int, err error)
	// TimeKept is Time for the candidate with the state that its earlier launches left. ok is false
	// if it keeps none.
	TimeKept(launches int) (t Times, ok bool, err error)
	// Compare compares what the candidate wrote since the last draw with what the baseline wrote,
	// launch by launch. It also checks that everything else that the candidate could have written
	// is as Draw left it.
	Compare(launches int) ([]Difference, error)
	// Keep copies both sides' outputs of one launch of the last draw.
	Keep(launch int) (Kept, error)
	// State reads the device, between two blocks.
	State() State
}

// A State is what the device shows at a moment. A figure that it does not have is 0.
type State struct {
	Throttled bool
	MHz       float64
	Watts     float64
	Celsius   float64
}

// Times is how long a sample took, all its launches together.
type Times struct {
	Device time.Duration // by the clock that is judged
	Wall   time.Duration // by the judge's clock
	// First and Mean are set by a single bench whose launches run in one process: the time of the
	// first launch, and the mean of the others. Device is their median.
	First, Mean time.Duration
}

// A Difference says how far the candidate's output of one launch is from the baseline's.
type Difference struct {
	Same   bool // bit for bit
	Errors gates.Errors
	Far    int // elements beyond Twice the tolerance
}

// A Kept holds both sides' outputs on one input until they are compared with the reference.
type Kept interface {
	Check() (candidate, baseline *gates.Errors, err error)
	Drop()
}

// A Failed error says how the candidate itself failed: evidence, not a fault.
type Failed struct{ gates.Failure }

func (f *Failed) Error() string { return f.Detail }

// Failure separates the candidate's failure from all other errors.
func Failure(err error) (*gates.Failure, error) {
	if f, ok := errors.AsType[*Failed](err); ok {
		return &f.Failure, nil
	}
	return nil, err
}

// A Plan says how much is measured.
type Plan struct {
	Pairs      int
	Warm       int // samples of a side before its first that counts
	References int // randomly chosen outputs that are compared with the reference
	// Separation is the farthest that two outputs can be from each other if both are right. Apart is
	// the largest number of outputs beyond it that are compared with the reference.
	Separation gates.Separation
	Apart      int
	Now        func() time.Time // bounds the time of these comparisons; nil for no bound
	Spent      gates.Spent      // counts the time of everything; nil for none
}

// A Timing takes one shape's series.
type Timing struct {
	bench   Bench
	series  *gates.Series
	plan    Plan
	rng     *rand.Rand
	draws   map[string]int
	witness *witness
}

// New prepares a series, whose shape, batch, seed and distributions are set.
func New(b Bench, s *gates.Series, plan Plan, rng *rand.Rand) *Timing {
	if plan.Spent != nil {
		b = metered{b, plan.Spent}
	}
	return &Timing{bench: b, series: s, plan: plan, rng: rng, draws: map[string]int{}}
}

// draw gives the sides fresh inputs.
func (r *Timing) draw(phase string, dist distribution.Kind, launches int) error {
	return r.drawOn(r.bench, phase, dist, launches)
}

func (r *Timing) drawOn(b Bench, phase string, dist distribution.Kind, launches int) error {
	n := r.draws[phase]
	r.draws[phase]++
	seeds := make([]uint64, launches)
	for i := range seeds {
		seeds[i] = r.series.DrawSeed(phase, n, i)
	}
	if err := b.Draw(dist, seeds); err != nil {
		return fmt.Errorf("drawing inputs for %s: %w", r.series.Shape, err)
	}
	return nil
}

// distribution returns the n-th of the policy's distributions, cyclically.
func (r *Timing) distribution(n int) distribution.Kind {
	return distribution.Kind(r.series.Distributions[n%len(r.series.Distributions)])
}

// warm launches sides until the clocks have risen.
func (r *Timing) warm(sides ...rune) error {
	for range r.plan.Warm {
		if err := r.draw("warm", r.distribution(r.draws["warm"]), r.series.Batch); err != nil {
			return err
		}
		for _, side := range sides {
			if _, err := r.bench.Time(side, r.series.Batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func perLaunch(t time.Duration, launches int) float64 {
	return float64(t.Nanoseconds()) / float64(launches)
}

// Alone times the baseline before the candidate is loaded.
func (r *Timing) Alone() error {
	if err := r.warm(gates.SideBaseline); err != nil {
		return err
	}
	for range max(r.plan.Pairs/4, 4) {
		if err := r.draw("solo", r.distribution(r.draws["solo"]), r.series.Batch); err != nil {
			return err
		}
		t, err := r.bench.Time(gates.SideBaseline, r.series.Batch)
		if err != nil {
			return err
		}
		r.series.Solo = append(r.series.Solo, perLaunch(t.Device, r.series.Batch))
		if r.bench.State().Throttled {
			r.series.SoloDisturbed++
		}
	}
	return nil
}

// Measure takes the series. Check then compares its outputs with the reference. If the candidate
// fails, the series ends with the last whole block, so that the measured part can still be used.
func (r *Timing) Measure() (err error) {
	defer func() {
		if err != nil && r.witness != nil {
			r.witness.drop()
		}
	}()
	if err := r.warm(gates.SideBaseline, gates.SideControl, gates.SideCandidate); err != nil {
		return err
	}
	r.witness = newWitness(r)
	if err := r.single(); err != nil {
		return err
	}
	blocks := runners.Blocks(r.rng, r.plan.Pairs)
	for k, block := range blocks {
		whole := len(r.series.Nanos)
		if err := r.block(k, block); err != nil {
			r.series.Nanos, r.series.Wall = r.series.Nanos[:whole], r.series.Wall[:whole]
			return err
		}
		r.series.Order = strings.Join(blocks[:k+1], " ")
		state := r.bench.State()
		r.record(state)
		if state.Throttled {
			for i := whole; i < len(r.series.Nanos); i++ {
				r.series.Disturbed = append(r.series.Disturbed, i)
			}
		}
	}
	return r.kept()
}

// record adds the state after a block. A figure that is missing once is left out for the whole series.
func (r *Timing) record(state State) {
	if r.series.States == nil {
		if state.MHz <= 0 && state.Watts <= 0 && state.Celsius <= 0 {
			return
		}
		r.series.States = &gates.States{}
	}
	s, before := r.series.States, len(strings.Fields(r.series.Order))-1
	for _, f := range []struct {
		list  *[]float64
		value float64
	}{{&s.ClockMHz, state.MHz}, {&s.Watts, state.Watts}, {&s.Celsius, state.Celsius}} {
		if f.value > 0 && len(*f.list) == before {
			*f.list = append(*f.list, f.value)
		} else {
			*f.list = nil
		}
	}
}

// Check compares outputs of the launches that Measure timed with the reference's.
func (r *Timing) Check() error {
	defer r.witness.drop()
	return r.witness.check()
}

// block takes the two halves of one block, each on fresh inputs.
func (r *Timing) block(k int, block string) error {
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
		if err := r.witness.see(r.bench, r.distribution(k), r.series.Batch); err != nil {
			return err
		}
	}
	return nil
}

// SingleLaunches returns how many launches of a side run alone in a series whose samples are batches:
// half as many as there are pairs, and at least two of every kind of input.
func (p Plan) SingleLaunches(batch, kinds int) int {
	if batch == 1 {
		return 0
	}
	return max(p.Pairs/2, 2*kinds)
}

// maxWarm bounds how many launches may warm the code up for one that runs alone.
const maxWarm = 8

// single times launches that run alone, if a sample is a batch. Launches of a batch can share work,
// because the inputs of all of them are in the side's memory at once. The inputs of a single launch
// are not there before every earlier launch of the side has finished. So no other launch can have
// done its work, and none follows that could finish it. If the candidate gains less alone than in a
// batch, the gain in the batch is not real.
//
// The number of warm-up launches varies, so that no launch can detect that it is the timed one.
func (r *Timing) single() error {
	kinds := len(r.series.Distributions)
	count := r.plan.SingleLaunches(r.series.Batch, kinds)
	if count == 0 {
		return nil
	}
	s := &gates.Singles{Isolated: true}
	for n := range count {
		b, launches, err := r.bench.Single(r.series.Batch, 1+r.rng.IntN(min(r.series.Batch-1, maxWarm)))
		if err != nil {
			return err
		}
		dist := r.distribution(n)
		if err := r.drawOn(b, "single", dist, launches); err != nil {
			return err
		}
		order := []rune{gates.SideBaseline, gates.SideCandidate}
		if r.rng.IntN(2) == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			t, err := b.Time(side, launches)
			if err != nil {
				return err
			}
			times, first, mean := &s.Baseline, &s.FirstBaseline, &s.MeanBaseline
			if side == gates.SideCandidate {
				times, first, mean = &s.Candidate, &s.FirstCandidate, &s.MeanCandidate
			}
			*times = append(*times, perLaunch(t.Device, 1))
			if t.First > 0 {
				*first = append(*first, perLaunch(t.First, 1))
			}
			if t.Mean > 0 {
				*mean = append(*mean, perLaunch(t.Mean, 1))
				s.Launches = launches
			}
		}
		if err := r.witness.see(b, dist, launches); err != nil {
			return err
		}
	}
	r.series.Single = s
	return nil
}

// kept times the candidate with the state that it left itself, on fresh inputs, and checks that it
// is still right: this is how the kernel will be used.
func (r *Timing) kept() error {
	for range max(r.plan.Pairs/4, 4) {
		dist := r.distribution(r.draws["kept"])
		if err := r.draw("kept", dist, r.series.Batch); err != nil {
			return err
		}
		t, ok, err := r.bench.TimeKept(r.series.Batch)
		if err != nil || !ok {
			return err
		}
		r.series.Stateful = append(r.series.Stateful, perLaunch(t.Device, r.series.Batch))
		if _, err := r.bench.Time(gates.SideBaseline, r.series.Batch); err != nil {
			return err
		}
		if err := r.witness.see(r.bench, dist, r.series.Batch); err != nil {
			return err
		}
	}
	return nil
}
