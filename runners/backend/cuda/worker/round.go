package worker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	warmUps = 8 // samples of a side before its first that counts
	// references is how many outputs per series are compared with the reference, in addition to the
	// farthest of each distribution.
	references = 4
	// apart is how many outputs at most are compared with it because they are too far from the
	// baseline's for both to be right.
	apart = 64

	// keptProblem is added to the number of a problem whose launches share their state.
	keptProblem = 1000
)

// round measures every planned shape: first the baseline alone, before the candidate's code is on
// the GPU, and then all three sides interleaved. After all measurements it compares the outputs
// with the reference, while the next round's processes start.
func (s *session) round() error {
	round := gates.Round{Seed: s.request.Seed, Before: s.fitness(), Spent: s.spent}
	benches, err := s.measure()
	if err == nil {
		round.After = s.fitness()
		err = s.send(Reply{Measured: true})
	}
	for _, p := range s.sides {
		p.Kill() // everything that is left to compare lies in this process's memory
	}
	for i := 0; i < len(benches) && err == nil; i++ {
		err = benches[i].timing.Check()
	}
	for _, b := range benches {
		round.Series = append(round.Series, *b.series)
	}
	if round.Failure, err = interleave.Failure(err); err != nil {
		return err
	}
	return s.send(Reply{Round: &round})
}

func (s *session) measure() (measured []*bench, err error) {
	benches := make([]*bench, 0, len(s.request.Plans))
	for _, i := range s.rng.Perm(len(s.request.Plans)) {
		var b *bench
		if err := runners.Spend(s.spent, gates.WorkMemory, func() (err error) {
			b, err = s.newBench(s.request.Plans[i], len(benches))
			return err
		}); err != nil {
			return nil, fmt.Errorf("making room for %s: %w", s.request.Plans[i].Shape, err)
		}
		benches = append(benches, b)
	}
	load := func(letter rune, built side.Built) error {
		p := s.sides[letter]
		if err := p.Load(built); err != nil {
			return blame(p, err)
		}
		for _, b := range benches {
			q := problemOf(b.problem, b.batch, b.regions[letter], b.id)
			if err := p.Prepare(q); err != nil {
				return blame(p, err)
			}
			if letter == gates.SideCandidate && p.State {
				q.ID, q.Share = keptProblem+b.id, true
				if err := p.Prepare(q); err != nil {
					return blame(p, err)
				}
			}
		}
		return nil
	}
	if err := runners.Spend(s.spent, gates.WorkMemory, func() error { return load(gates.SideBaseline, *s.request.Baseline) }); err != nil {
		return nil, err
	}
	for _, b := range benches {
		if err := b.timing.Alone(); err != nil {
			return nil, fmt.Errorf("timing the baseline alone on %s: %w", b.series.Shape, err)
		}
	}
	// Each of the two has its own process, and the baseline is not timed meanwhile.
	if err := runners.Spend(s.spent, gates.WorkMemory, func() error {
		control := make(chan error, 1)
		go func() { control <- load(gates.SideControl, *s.request.Baseline) }()
		failed := load(gates.SideCandidate, *s.request.Candidate)
		return cmp.Or(<-control, failed)
	}); err != nil {
		return nil, err
	}
	for _, b := range benches {
		if err := s.send(Reply{Progress: b.series.Shape}); err != nil {
			return measured, err
		}
		measured = append(measured, b)
		if err := b.timing.Measure(); err != nil {
			return measured, fmt.Errorf("timing %s: %w", b.series.Shape, err)
		}
	}
	return measured, nil
}

// A bench measures one shape of a round; see interleave.Bench.
type bench struct {
	*session
	id      int
	problem *tensor.Problem
	warm    bool         // launches begin with their arguments in the L2 cache
	used    map[rune]int // bytes of a slot that a side's launch uses
	series  *gates.Series
	timing  *interleave.Timing

	batch *oracle.InputBatch
	places
	alone     map[rune]driver.Buffer // each side's slot for launches that run alone: see Single
	reference *oracle.Reference
	again     *oracle.InputBatch // one launch, drawn again for the reference
	drawn     []uint64
	dist      distribution.Kind
	spare     *[]*output
	direct    *direct // nil where outputs are kept until everything is measured
}

func (s *session) newBench(plan Plan, id int) (*bench, error) {
	p, err := s.outline(plan.Shape)
	if err != nil {
		return nil, err
	}
	scratch, err := s.scratchSize(gates.SideCandidate, plan.Shape)
	if err != nil {
		return nil, err
	}
	size := tensor.NewLayout(p.Args, 0).Size
	plan.Batch = fittingBatch(plan.Batch, size+scratch, s.memory/uint64(len(s.request.Plans)))
	if plan.Shape.Warm {
		plan.Batch = warmBatch(plan.Batch, size+scratch, s.l2)
	}
	b := &bench{session: s, id: id, problem: p, warm: plan.Shape.Warm, used: map[rune]int{}, alone: map[rune]driver.Buffer{}, spare: new([]*output)}
	if plan.Batch == 1 && checkedAtOnce(size, len(s.request.Distributions)) {
		b.direct = &direct{}
	}
	b.series = &gates.Series{Shape: plan.Shape.Name, Batch: plan.Batch, Cold: !plan.Shape.Warm, Seed: s.rng.Uint64() >> 16}
	kinds := plan.Kinds
	if len(kinds) == 0 {
		kinds = s.request.Distributions
	}
	for _, d := range kinds {
		b.series.Distributions = append(b.series.Distributions, string(d))
	}
	if b.batch, err = s.oracle.NewInputBatch(p, plan.Batch); err != nil {
		return nil, err
	}
	b.timing = interleave.New(b, b.series, interleave.Plan{
		Pairs: s.request.Pairs, Warm: warmUps, References: references,
		Separation: s.request.Separation, Apart: interleave.Room(b.batch.Layout.Size, references, apart), Now: time.Now, Spent: s.spent,
	}, s.rng)
	if b.direct == nil {
		if b.again, err = s.oracle.NewInputBatch(p, 1); err != nil {
			return nil, err
		}
	}
	if b.reference, err = s.newReference(p); err != nil {
		return nil, err
	}
	slots, regions := map[rune][]driver.Buffer{}, map[rune]scratchRegion{}
	for letter, process := range s.sides {
		size, err := s.scratchSize(letter, plan.Shape)
		if err != nil {
			return nil, err
		}
		bytes := b.batch.Layout.Size + size
		b.used[letter] = bytes
		if slots[letter], err = s.newSlots(letter, process, id, plan.Batch, bytes, plan.Shape); err != nil {
			return nil, err
		}
		if plan.Batch > 1 && letter != gates.SideControl && !plan.Repeat {
			if b.alone[letter], err = process.NewSingleSlot(s.ctx, id, bytes); err != nil {
				return nil, fmt.Errorf("making the slot of side %c for launches that run alone: %w", letter, err)
			}
		}
		if regions[letter], err = s.newScratchRegion(letter, plan.Shape, b.batch.Layout.Size, slots[letter]); err != nil {
			return nil, err
		}
	}
	b.places, err = s.newPlaces(slots, regions)
	return b, err
}

// places says where some launches of every side have their arguments and their scratch.
type places struct {
	slots   map[rune][]driver.Buffer
	regions map[rune]scratchRegion
	all     oracle.Places // the slots of all sides, one side after the other
	at      map[rune]int  // the index in all where a side's slots begin
}

func (s *session) newPlaces(slots map[rune][]driver.Buffer, regions map[rune]scratchRegion) (places, error) {
	p := places{slots: slots, regions: regions, at: map[rune]int{}}
	var all []driver.DevicePtr
	for letter, own := range slots {
		p.at[letter] = len(all)
		for _, slot := range own {
			all = append(all, slot.Ptr)
		}
	}
	var err error
	p.all, err = s.oracle.NewPlaces(all)
	return p, err
}

func (b *bench) Draw(dist distribution.Kind, seeds []uint64) error {
	b.drawn, b.dist = seeds, dist
	if b.direct != nil {
		b.direct.checked = nil
	}
	if err := b.batch.Draw(dist, seeds); err != nil {
		return err
	}
	if err := b.batch.Scatter(b.all, len(seeds)); err != nil {
		return err
	}
	for _, t := range b.regions {
		if err := t.Scatter(len(seeds)); err != nil {
			return err
		}
	}
	return b.stream.Synchronize()
}

// A single bench times the last launch of a draw, in the slot that its side cannot reach before.
type single struct{ *bench }

// Single implements [interleave.Bench].
func (b *bench) Single(_, warm int) (interleave.Bench, int, error) {
	slots, regions := map[rune][]driver.Buffer{}, map[rune]scratchRegion{}
	var err error
	for letter, own := range b.alone {
		slots[letter] = append(slices.Clone(b.slots[letter][:warm]), own)
		if regions[letter], err = b.regions[letter].in(slots[letter], b.batch.Layout.Size); err != nil {
			return nil, 0, err
		}
	}
	l := *b
	l.places, err = b.newPlaces(slots, regions)
	return single{&l}, warm + 1, err
}

func (l single) Time(letter rune, launches int) (t interleave.Times, err error) {
	p := l.sides[letter]
	if err := p.Ready(l.id, true); err != nil {
		return t, blame(p, err)
	}
	if l.warm {
		return l.timeWarm(p, letter, launches-1)
	}
	t.Device, err = p.RunAlone(l.id, launches-1)
	return t, blame(p, err)
}

// timeWarm times the last launch with its slot in the cache. The launches before it load the code, which the flush evicted.
func (l single) timeWarm(p *side.Process, letter rune, before int) (t interleave.Times, err error) {
	if _, err := p.Run(l.id, 0, before, true); err != nil {
		return t, blame(p, err)
	}
	if err := l.fillCache(letter, before, 1); err != nil {
		return t, err
	}
	t.Device, err = p.RunFilledAlone(l.id)
	return t, blame(p, err)
}

func (b *bench) Time(letter rune, launches int) (interleave.Times, error) {
	return b.time(letter, b.id, launches, true)
}

func (b *bench) TimeKept(launches int) (interleave.Times, bool, error) {
	p := b.sides[gates.SideCandidate]
	if !p.State {
		return interleave.Times{}, false, nil
	}
	t, err := b.time(gates.SideCandidate, keptProblem+b.id, launches, false)
	return t, true, err
}

// time makes a side launch once the GPU is in its initial state. This process measures the
// wall-clock time; no kernel of a side can reach its clock.
func (b *bench) time(letter rune, problem, launches int, reset bool) (t interleave.Times, err error) {
	p := b.sides[letter]
	if err := b.ready(letter, problem, launches, reset); err != nil {
		return t, err
	}
	start := time.Now()
	if b.warm {
		t.Device, err = p.RunFilled(problem, launches)
	} else {
		t.Device, err = p.Run(problem, 0, launches, true)
	}
	t.Wall = time.Since(start)
	return t, blame(p, err)
}

// ready brings the GPU into its initial state, with a filled cache if the launches begin so.
func (b *bench) ready(letter rune, problem, launches int, reset bool) error {
	p := b.sides[letter]
	if !b.warm {
		return blame(p, p.Ready(problem, reset))
	}
	if err := p.Empty(problem, reset); err != nil {
		return blame(p, err)
	}
	return b.fillCache(letter, 0, launches)
}

// fillCache brings the slots of some launches into the L2 cache. This process reads them: no code of a side runs between the moment
// when its inputs can be reached and the measured launch.
func (b *bench) fillCache(letter rune, first, launches int) error {
	return b.oracle.FillCache(b.all.Slice(b.at[letter]+first, launches), b.used[letter])
}

func (b *bench) target(letter rune, launches int) oracle.Target {
	return oracle.TargetOf(b.problem.Args, b.batch.Layout, b.all.Slice(b.at[letter], launches))
}

func (b *bench) Compare(launches int) ([]interleave.Difference, error) {
	cand := b.target(gates.SideCandidate, launches)
	errors, same, err := b.oracle.Compare(cand, b.target(gates.SideBaseline, launches), b.manifest.ToleranceOf)
	if err != nil {
		return nil, err
	}
	far, err := b.far(cand, errors)
	if err != nil {
		return nil, err
	}
	touched, err := b.batch.Touched(cand.Places)
	if err != nil {
		return nil, err
	}
	beside, err := b.regions[gates.SideCandidate].Touched(launches)
	if err != nil {
		return nil, err
	}
	all := make([]interleave.Difference, launches)
	for i := range all {
		switch {
		case touched[i].Input != "":
			return nil, &interleave.Failed{Failure: gates.InputsWritten([]string{touched[i].Input})}
		case touched[i].Outside || beside[i]:
			return nil, &interleave.Failed{Failure: gates.WrittenOutside()}
		}
		all[i] = interleave.Difference{Same: same[i], Errors: *errors[i], Far: far[i]}
	}
	return all, nil
}

// far returns how many elements of each output are beyond twice the tolerance of the baseline's. It
// compares again only if an element is beyond the tolerance.
func (b *bench) far(cand oracle.Target, errors []*gates.Errors) ([]int, error) {
	far := make([]int, len(errors))
	if !slices.ContainsFunc(errors, func(e *gates.Errors) bool { return e.Bad > 0 }) {
		return far, nil
	}
	again, _, err := b.oracle.Compare(cand, b.target(gates.SideBaseline, len(errors)), interleave.Twice(b.manifest.ToleranceOf))
	for i, e := range again {
		far[i] = e.Bad
	}
	return far, err
}

// State implements [interleave.Bench].
func (b *bench) State() interleave.State { return b.state() }

// An output is a copy of one slot of the candidate and one of the baseline, with the seed and the
// distribution of their inputs.
type output struct {
	bench  *bench
	memory []driver.Buffer // the candidate's, the baseline's
	places oracle.Places
	seed   uint64
	dist   distribution.Kind
}

func (b *bench) Keep(launch int) (interleave.Kept, error) {
	if b.direct != nil {
		return b.checkAtOnce()
	}
	o, err := b.spareOutput()
	if err != nil {
		return nil, err
	}
	o.seed, o.dist = b.drawn[launch], b.dist
	for i, side := range keptSides {
		if err := b.stream.CopyDevice(o.memory[i], b.slots[side][launch].Slice(0, o.memory[i].Size)); err != nil {
			return nil, err
		}
	}
	return o, nil
}

var keptSides = []rune{gates.SideCandidate, gates.SideBaseline}

func (b *bench) spareOutput() (*output, error) {
	if n := len(*b.spare); n > 0 {
		o := (*b.spare)[n-1]
		*b.spare = (*b.spare)[:n-1]
		o.bench = b
		return o, nil
	}
	o := &output{bench: b}
	var at []driver.DevicePtr
	for range keptSides {
		m, err := b.ctx.Alloc(int64(b.batch.Layout.Size))
		if err != nil {
			return nil, err
		}
		o.memory, at = append(o.memory, m), append(at, m.Ptr)
	}
	var err error
	o.places, err = b.oracle.NewPlaces(at)
	return o, err
}

// Check draws the inputs again and runs the reference on them.
func (o *output) Check() (candidate, baseline *gates.Errors, err error) {
	b := o.bench
	if err := b.again.Draw(o.dist, []uint64{o.seed}); err != nil {
		return nil, nil, err
	}
	if err := b.expect(b.reference, b.again, b.problem.Shape.Dims, false); err != nil {
		return nil, nil, err
	}
	compare := func(i int) (*gates.Errors, error) {
		return b.reference.Compare(oracle.TargetOf(b.problem.Args, b.batch.Layout, o.places.Slice(i, 1)), b.manifest.ToleranceOf)
	}
	if candidate, err = compare(0); err != nil {
		return nil, nil, err
	}
	baseline, err = compare(1)
	return candidate, baseline, err
}

// Drop releases the copy for another output.
func (o *output) Drop() { *o.bench.spare = append(*o.bench.spare, o) }
