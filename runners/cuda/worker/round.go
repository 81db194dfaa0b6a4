package worker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
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
	failure, err := candidateFailure(err)
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
