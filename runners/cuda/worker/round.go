package worker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// round measures every planned shape: the baseline alone before the candidate is
// loaded, then baseline, candidate and a second copy of the baseline in mirrored
// blocks of random order. Every timed launch finds fresh input under its
// pointers, poisoned output and a cold L2, and every output of the candidate is
// verified.
func (s *session) round() error {
	round := gates.Round{Seed: s.request.Seed, Before: s.fitness()}
	b := &bench{session: s, rng: rand.New(rand.NewPCG(s.request.Seed, 1)), kernels: map[rune]*kernel{}}
	err := b.run(&round)
	failure, err := splitFailure(err)
	if err != nil {
		return err
	}
	round.Failure = failure
	if failure == nil {
		round.After = s.fitness()
	}
	return s.send(Reply{Round: &round})
}

// A bench is one round's kernels, shapes and clock.
type bench struct {
	*session
	rng      *rand.Rand
	kernels  map[rune]*kernel
	settings []*setting
	scratch  driver.Buffer // what flushes the L2
	from, to *driver.Event
}

func (b *bench) run(round *gates.Round) error {
	var err error
	if b.scratch, err = b.ctx.Alloc(max(2*b.l2, 64<<20)); err != nil {
		return err
	}
	if b.from, err = b.ctx.NewEvent(); err != nil {
		return err
	}
	if b.to, err = b.ctx.NewEvent(); err != nil {
		return err
	}
	for _, i := range b.rng.Perm(len(b.request.Plans)) {
		set, err := b.stage(b.request.Plans[i])
		if err != nil {
			return fmt.Errorf("staging %s: %w", b.request.Plans[i].Shape, err)
		}
		b.settings = append(b.settings, set)
	}
	if b.kernels[gates.SideBaseline], err = b.load(baseline, b.request.Baseline); err != nil {
		return err
	}
	if err := b.alone(); err != nil {
		return err
	}
	if b.kernels[gates.SideControl], err = b.load(control, b.request.Baseline); err != nil {
		return err
	}
	if b.kernels[gates.SideCandidate], err = b.load(candidate, b.request.Candidate); err != nil {
		return err
	}
	for _, set := range b.settings {
		if err := b.send(Reply{Progress: set.series.Shape}); err != nil {
			return err
		}
		err := b.measure(set)
		round.Series = append(round.Series, set.series)
		if err != nil {
			return fmt.Errorf("timing %s: %w", set.series.Shape, err)
		}
	}
	return nil
}

// A setting is one shape of the round.
type setting struct {
	series gates.Series
	plan   Plan
	layout problem.Layout
	sets   []*problem.Problem
	want   [][][]float64   // by set, then output
	right  [][][]byte      // the candidate's own verified output, by set
	errors []*gates.Errors // of those outputs
	images driver.Buffer   // one filled slot per set
	slots  driver.Buffer   // one slot per launch of a batch
	graphs map[rune]func() error
}

// stage draws the shape's inputs and brings them onto the GPU.
func (b *bench) stage(plan Plan) (*setting, error) {
	n := len(plan.Sets)
	set := &setting{
		plan: plan, series: gates.Series{Shape: plan.Shape, Batch: plan.Batch, Cold: true, Worst: &gates.Errors{}},
		sets: make([]*problem.Problem, n), want: make([][][]float64, n), right: make([][][]byte, n), errors: make([]*gates.Errors, n),
		graphs: map[rune]func() error{},
	}
	toggles := b.request.Candidate.Toggles
	if err := parallel(n, func(i int) error {
		var err error
		c := plan.Sets[i]
		if set.sets[i], err = problem.New(b.manifest, c.Shape, toggles, c.Distribution, c.Seed); err != nil {
			return err
		}
		set.want[i], err = b.expected(set.sets[i].Args, c.File+wantSuffix)
		return err
	}); err != nil {
		return nil, err
	}
	set.layout = problem.NewLayout(set.sets[0].Args, 0)
	size := int64(set.layout.Size)
	var err error
	if set.images, err = b.ctx.Alloc(size * int64(n)); err != nil {
		return nil, err
	}
	if set.slots, err = b.ctx.Alloc(size * int64(plan.Batch)); err != nil {
		return nil, err
	}
	slot := make([]byte, size)
	for i, p := range set.sets {
		set.layout.Fill(slot, p.Args)
		if err := b.stream.ToDevice(set.images.Slice(int64(i)*size, size), slot); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// parallel does n things on all cores and returns the first error.
func parallel(n int, do func(i int) error) error {
	var wait sync.WaitGroup
	errs := make([]error, n)
	tickets := make(chan struct{}, runtime.NumCPU())
	for i := range n {
		wait.Add(1)
		tickets <- struct{}{}
		go func() {
			defer func() { <-tickets; wait.Done() }()
			errs[i] = do(i)
		}()
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// launcher is one side's batch on the shape: a single launch, or a graph of many
// over as many inputs, where one launch alone is too short for the clock.
func (b *bench) launcher(set *setting, side rune) (func() error, error) {
	if launch := set.graphs[side]; launch != nil {
		return launch, nil
	}
	k := b.kernels[side]
	var launches []func() error
	for i := range set.plan.Batch {
		base := set.slots.Ptr + driver.DevicePtr(i*set.layout.Size)
		launch, err := b.prepare(k, set.plan.Sets[0].Shape.Dims, set.sets[0].Args, set.layout, base)
		if err != nil {
			return nil, err
		}
		launches = append(launches, launch)
	}
	set.graphs[side] = launches[0]
	if len(launches) > 1 {
		graph, err := b.stream.Capture(func() error {
			for _, launch := range launches {
				if err := launch(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, b.blame(k.who, err)
		}
		if err := graph.Upload(b.stream); err != nil {
			return nil, b.blame(k.who, err)
		}
		set.graphs[side] = func() error { return b.blame(k.who, graph.Launch(b.stream)) }
	}
	return set.graphs[side], nil
}

// alone times the baseline before the candidate's code is on the GPU.
func (b *bench) alone() error {
	for _, set := range b.settings {
		if err := b.warm(set, gates.SideBaseline); err != nil {
			return err
		}
		for range max(b.request.Pairs/4, 4) {
			ns, _, err := b.sample(set, gates.SideBaseline)
			if err != nil {
				return err
			}
			set.series.Solo = append(set.series.Solo, ns)
		}
	}
	return nil
}

const warmTime = 30 * time.Millisecond

// warm launches a side until the clocks have risen.
func (b *bench) warm(set *setting, side rune) error {
	for start, n := time.Now(), 0; n < 3 || time.Since(start) < warmTime; n++ {
		if _, _, err := b.sample(set, side); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measure(set *setting) error {
	if err := b.verifyAll(set); err != nil {
		return err
	}
	for _, side := range []rune{gates.SideBaseline, gates.SideControl, gates.SideCandidate} {
		if err := b.warm(set, side); err != nil {
			return err
		}
	}
	order := runners.Blocks(b.rng, b.request.Pairs)
	for done, block := range order {
		first := len(set.series.Nanos)
		for _, side := range block {
			ns, shift, err := b.sample(set, side)
			if err != nil {
				return err
			}
			set.series.Nanos = append(set.series.Nanos, ns)
			if side == gates.SideCandidate {
				if err := b.verify(set, shift); err != nil {
					return err
				}
			}
		}
		if b.throttled() {
			for i := first; i < len(set.series.Nanos); i++ {
				set.series.Spoiled = append(set.series.Spoiled, i)
			}
		}
		set.series.Order = strings.Join(order[:done+1], " ")
	}
	return nil
}

// sample is one timed batch of one side. Before it, every slot gets another
// set's input and poison, the L2 is flushed, and persisting lines are let go.
func (b *bench) sample(set *setting, side rune) (ns float64, shift int, err error) {
	launch, err := b.launcher(set, side)
	if err != nil {
		return 0, 0, err
	}
	shift = b.rng.IntN(len(set.sets))
	size := int64(set.layout.Size)
	for i := range set.plan.Batch {
		from := int64((i + shift) % len(set.sets))
		if err := b.stream.CopyDevice(set.slots.Slice(int64(i)*size, size), set.images.Slice(from*size, size)); err != nil {
			return 0, 0, err
		}
	}
	if err := b.ctx.ResetPersistingL2(); err != nil {
		return 0, 0, err
	}
	if err := b.stream.Fill32(b.scratch, uint32(shift)); err != nil {
		return 0, 0, err
	}
	if err := b.from.Record(b.stream); err != nil {
		return 0, 0, err
	}
	if err := launch(); err != nil {
		return 0, 0, err
	}
	if err := b.to.Record(b.stream); err != nil {
		return 0, 0, err
	}
	who := b.kernels[side].who
	if err := b.wait(who); err != nil {
		return 0, 0, err
	}
	took, err := b.to.Since(b.from)
	if err != nil {
		return 0, 0, b.blame(who, err)
	}
	return float64(took.Nanoseconds()) / float64(set.plan.Batch), shift, nil
}

// verifyAll runs the candidate once on every set and keeps the outputs, whose
// errors are known now: a timed launch whose bits agree is as right as they are.
func (b *bench) verifyAll(set *setting) error {
	k := b.kernels[gates.SideCandidate]
	size := int64(set.layout.Size)
	slots := make([][]byte, len(set.sets))
	for i := range set.sets {
		if err := b.stream.CopyDevice(set.slots.Slice(0, size), set.images.Slice(int64(i)*size, size)); err != nil {
			return err
		}
		launch, err := b.prepare(k, set.plan.Sets[0].Shape.Dims, set.sets[0].Args, set.layout, set.slots.Ptr)
		if err != nil {
			return err
		}
		if err := launch(); err != nil {
			return err
		}
		if err := b.wait(k.who); err != nil {
			return err
		}
		slots[i] = make([]byte, size)
		if err := b.stream.ToHost(slots[i], set.slots.Slice(0, size)); err != nil {
			return err
		}
	}
	return parallel(len(slots), func(i int) error {
		set.right[i] = set.layout.Outputs(slots[i])
		var err error
		set.errors[i], err = runners.Compare(b.manifest, set.sets[i].Args, set.right[i], set.want[i])
		return err
	})
}

// verify compares every output of the batch that was timed last, and one slot in
// full: inputs and guards.
func (b *bench) verify(set *setting, shift int) error {
	size := int64(set.layout.Size)
	whole := b.rng.IntN(set.plan.Batch)
	for i := range set.plan.Batch {
		from := (i + shift) % len(set.sets)
		slot := set.slots.Slice(int64(i)*size, size)
		got, err := b.outputs(set, slot)
		if err != nil {
			return err
		}
		e := set.errors[from]
		if !equal(got, set.right[from]) {
			if e, err = runners.Compare(b.manifest, set.sets[from].Args, got, set.want[from]); err != nil {
				return err
			}
		}
		set.series.Verified++
		runners.Worse(set.series.Worst, e)
		if i == whole {
			if err := b.untouched(set, slot, from); err != nil {
				return err
			}
		}
	}
	return nil
}

// outputs brings only the outputs of a slot to the host.
func (b *bench) outputs(set *setting, slot driver.Buffer) ([][]byte, error) {
	out := make([][]byte, len(set.sets[0].Args))
	for i, a := range set.sets[0].Args {
		if !a.Array() || !a.Writes() {
			continue
		}
		out[i] = make([]byte, a.Size())
		if err := b.stream.ToHost(out[i], slot.Slice(int64(set.layout.Offsets[i]), int64(a.Size()))); err != nil {
			return nil, b.blame(candidate, err)
		}
	}
	return out, nil
}

// untouched sees to it that the kernel left everything alone but its output.
func (b *bench) untouched(set *setting, slot driver.Buffer, from int) error {
	data := make([]byte, set.layout.Size)
	if err := b.stream.ToHost(data, slot); err != nil {
		return b.blame(candidate, err)
	}
	inputs, outside := set.layout.Changed(data, set.sets[from].Args)
	switch {
	case len(inputs) > 0:
		return &kernelError{candidate, gates.Failure{Kind: "inputs", Detail: "the kernel wrote to its input " + strings.Join(inputs, ", ")}}
	case outside:
		return &kernelError{candidate, gates.Failure{Kind: "out-of-bounds", Detail: "the kernel wrote outside its arguments"}}
	}
	return nil
}
