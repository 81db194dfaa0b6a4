package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	sampleTime = time.Millisecond // a shorter sample would show the start of a process, not the kernel
	maxBatch   = 128
	maxSlots   = 256 << 20 // bytes that the arguments of a batch may take
	references = 4         // random outputs of a series that are compared with the reference
	apart      = 64        // those at most that are too far from the baseline's to be right like it
)

// Round measures the shapes once in fresh processes: the baseline alone, then baseline, candidate
// and a second copy of the baseline in the order of package interleave.
func (w *Worker) Round(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape, p runners.Progress) (gates.Round, error) {
	round := gates.Round{Before: runners.Load(), Seed: w.rng.Uint64() >> 16, Spent: gates.Spent{}}
	t := &table{
		worker: w, ctx: ctx, rng: rand.New(rand.NewPCG(round.Seed, 1)), children: map[seat]*child{},
		plan: interleave.Plan{Pairs: int(gate.Pairs), Warm: 1, References: references, Separation: gates.SeparationOf(w.job.Rule().Gates.Correctness), Now: time.Now, Spent: round.Spent},
	}
	defer t.close()
	if err := t.prepare(shapes); err != nil {
		return round, err
	}
	// The baseline is timed alone before any code of the candidate is loaded.
	if err := t.seat(gates.SideBaseline, runners.Baseline); err != nil {
		return round, err
	}
	for _, s := range t.settings {
		if err := s.timing.Alone(); err != nil {
			return round, fmt.Errorf("timing the baseline alone on %s: %w", s.series.Shape, err)
		}
	}
	// All sides start anew: what a process could count has the same value for each of them.
	t.leave(gates.SideBaseline)
	for _, side := range []struct {
		name rune
		role runners.Role
	}{{gates.SideBaseline, runners.Baseline}, {gates.SideControl, runners.Baseline}, {gates.SideCandidate, runners.Candidate}} {
		if err := t.seat(side.name, side.role); err != nil {
			return round, err
		}
	}
	for _, s := range t.settings {
		p.Report(runners.Event{Text: s.series.Shape})
		err := s.timing.Measure()
		if err == nil {
			err = s.timing.Check()
		}
		if round.Failure, err = interleave.Failure(err); err != nil {
			return round, fmt.Errorf("timing %s: %w", s.series.Shape, err)
		}
		round.Series = append(round.Series, *s.series)
		if round.Failure != nil {
			break
		}
	}
	round.After = runners.Load()
	return round, nil
}

// A table holds the sides of one round.
type table struct {
	worker    *Worker
	ctx       context.Context
	rng       *rand.Rand
	plan      interleave.Plan
	settings  []setting
	benches   []*bench
	children  map[seat]*child
	reference truth
	memory    int // bytes of the memory that a child shares
}

// A seat belongs to a side or, for a choice, to one of its variants.
type seat struct {
	side    rune
	program string
}

// A setting is one shape of a round.
type setting struct {
	series *gates.Series
	timing *interleave.Timing
}

func (t *table) close() {
	for _, c := range t.children {
		c.close()
	}
	if t.reference != nil {
		t.reference.close()
	}
}

// leave ends the programs of a side.
func (t *table) leave(side rune) {
	for at, c := range t.children {
		if at.side == side {
			c.close()
			delete(t.children, at)
		}
	}
}

func (t *table) seat(side rune, role runners.Role) error {
	for _, b := range t.benches {
		exe, err := t.worker.sides[role].serving(b.shape.Dims)
		if err != nil {
			return err
		}
		at := seat{side, exe.path}
		b.programs[side] = exe.path
		if t.children[at] != nil {
			continue
		}
		if t.children[at], err = startChild(t.ctx, exe.path, t.memory, exe.threads, t.worker.config.LaunchTimeout); err != nil {
			delete(t.children, at)
			return err
		}
	}
	return nil
}

// prepare sets up every shape, in random order.
func (t *table) prepare(shapes []manifest.Shape) error {
	w := t.worker
	m, toggles := w.job.Of(w.job.Candidate), w.sides[runners.Candidate].toggles
	refSize := 0
	for _, i := range t.rng.Perm(len(shapes)) {
		shape := shapes[i]
		batch, err := w.batch(t.ctx, shape)
		if err != nil {
			return fmt.Errorf("finding a batch size for %s: %w", shape.Name, err)
		}
		d, err := newDrawer(m, shape, toggles)
		if err != nil {
			return err
		}
		size, err := referenceSize(m, shape, toggles)
		if err != nil {
			return err
		}
		refSize = max(refSize, size)
		t.memory = max(t.memory, d.layout.Size*batch)
		if d.recordings, err = w.recordings(); err != nil {
			return err
		}
		series := &gates.Series{Shape: shape.Name, Batch: batch, Seed: t.rng.Uint64() >> 16, Distributions: w.distributions(shape.Name)}
		b := &bench{drawer: d, job: w.job, ctx: t.ctx, children: t.children, programs: map[rune]string{}}
		t.benches = append(t.benches, b)
		plan := t.plan
		plan.Apart = interleave.Room(d.layout.Size, references, apart)
		t.settings = append(t.settings, setting{series, interleave.New(b, series, plan, t.rng)})
	}
	var err error
	if t.reference, err = w.openReference(t.ctx, refSize); err != nil {
		return err
	}
	for _, b := range t.benches {
		b.reference = t.reference
	}
	return nil
}

// distributions returns the kinds of input that a shape is timed on.
func (w *Worker) distributions(shape string) []string {
	var names []string
	for _, d := range w.job.TimedKinds(shape) {
		names = append(names, string(d))
	}
	return names
}

// random returns the first random kind of input of a shape.
func (w *Worker) random(shape string) distribution.Kind {
	return distribution.Random(w.job.TimedKinds(shape))[0]
}

// recordings reads the recordings of the job once.
func (w *Worker) recordings() (tensor.Recordings, error) {
	if w.recorded == nil {
		all, err := w.job.ReadRecordings()
		if err != nil {
			return nil, err
		}
		w.recorded = all
	}
	return w.recorded, nil
}

// batch returns how many launches make a sample on this shape, so that the faster side's sample is
// still long enough. It is found once and kept for all rounds.
func (w *Worker) batch(ctx context.Context, shape manifest.Shape) (int, error) {
	if n := w.batches[shape.Name]; n > 0 {
		return n, nil
	}
	n := 1
	for role, exe := range w.sides {
		program, err := exe.serving(shape.Dims)
		if err != nil {
			return 0, err
		}
		enough, failure, err := w.enough(ctx, shape, program, n)
		if err != nil {
			return 0, err
		}
		if failure != nil && role == runners.Baseline {
			return 0, fmt.Errorf("the baseline failed: %s", failure.Detail)
		}
		// If the candidate failed, the round itself reports it.
		n = max(n, enough)
	}
	w.batches[shape.Name] = n
	return n, nil
}

// enough returns how many launches of one side take as long as a sample should, at least n.
func (w *Worker) enough(ctx context.Context, shape manifest.Shape, exe *executable, n int) (int, *gates.Failure, error) {
	d, err := newDrawer(exe.manifest, shape, exe.toggles)
	if err != nil {
		return n, nil, err
	}
	most := max(min(maxBatch, maxSlots/d.layout.Size), 1)
	c, err := startChild(ctx, exe.path, most*d.layout.Size, exe.threads, w.config.LaunchTimeout)
	if err != nil {
		return n, nil, err
	}
	defer c.close()
	for {
		seeds := make([]uint64, n)
		for i := range seeds {
			seeds[i] = w.rng.Uint64()
		}
		if err := d.draw(w.random(shape.Name), seeds); err != nil {
			return n, nil, err
		}
		fastest := time.Duration(1<<63 - 1)
		for range 3 {
			took, failure, err := c.launchOn(d.images[:n])
			if err != nil || failure != nil {
				return n, failure, err
			}
			if fastest = min(fastest, took.Device); fastest >= sampleTime {
				break
			}
		}
		if n == most || fastest*5 >= sampleTime*4 {
			return n, nil, nil
		}
		n = min(most, n+1+int(time.Duration(n)*(sampleTime-fastest)/max(fastest, 1)))
	}
}
