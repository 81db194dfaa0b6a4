package cpu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/problem"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	sampleTime = 1500 * time.Microsecond // a shorter sample would show the scheduler, not the kernel
	maxBatch   = 64
	inputSets  = 4 // that samples rotate over, and a batch's size at least
)

// Round measures the shapes once in fresh processes: the baseline alone, then
// baseline, candidate and a second copy of the baseline in mirrored blocks of
// random order, each launch on fresh input and each output verified.
func (w *Worker) Round(ctx context.Context, gate *policies.PerformanceGate, shapes []string, p runners.Progress) (gates.Round, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	round := gates.Round{Before: fitness(), Seed: w.rng.Uint64() >> 16}
	t := &table{worker: w, ctx: ctx, gate: gate, rng: rand.New(rand.NewPCG(round.Seed, 1)), children: map[rune]*child{}}
	defer t.close()
	if err := t.prepare(shapes); err != nil {
		return round, err
	}
	// The baseline is timed alone before the candidate's code exists anywhere.
	if err := t.seat(gates.SideBaseline, runners.Baseline); err != nil {
		return round, err
	}
	if err := t.alone(); err != nil {
		return round, err
	}
	if err := t.seat(gates.SideControl, runners.Baseline); err != nil {
		return round, err
	}
	if err := t.seat(gates.SideCandidate, runners.Candidate); err != nil {
		return round, err
	}
	for _, s := range t.settings {
		p.Report(runners.Event{Text: s.series.Shape})
		failure, err := t.measure(s)
		if err != nil {
			return round, fmt.Errorf("timing %s: %w", s.series.Shape, err)
		}
		round.Series = append(round.Series, s.series)
		if failure != nil {
			round.Failure = failure
			break
		}
	}
	round.After = fitness()
	return round, nil
}

// A table is where the sides of one round sit.
type table struct {
	worker   *Worker
	ctx      context.Context
	gate     *policies.PerformanceGate
	rng      *rand.Rand
	settings []*setting
	children map[rune]*child
	memory   int // bytes that a child shares
}

// A setting is one shape of a round with its inputs and what they should give.
type setting struct {
	series gates.Series
	layout layout
	sets   []*problem.Problem
	want   [][][]float64 // by set, then output
	next   int           // set that the next sample begins with
}

func (t *table) close() {
	for _, c := range t.children {
		c.close()
	}
}

func (t *table) seat(side rune, role runners.Role) error {
	c, err := startChild(t.ctx, t.worker.sides[role].path, t.memory, t.worker.config.LaunchTimeout)
	if err != nil {
		return err
	}
	t.children[side] = c
	// An empty batch: the program is up when it answers.
	if _, failure, err := c.launch(0, 0, 0); err != nil || failure != nil {
		return errors.Join(err, fmt.Errorf("the %s's process does not answer", role))
	}
	c.clock = clockOf(c.process.Pid())
	return nil
}

// prepare draws inputs for every shape and asks the reference what they give.
func (t *table) prepare(names []string) error {
	m := t.worker.job.Manifest
	ref, err := t.worker.reference(t.ctx)
	if err != nil {
		return err
	}
	for _, i := range t.rng.Perm(len(names)) {
		shape, _ := m.Shape(names[i])
		batch, err := t.worker.batch(t.ctx, shape)
		if err != nil {
			return fmt.Errorf("finding a batch size for %s: %w", names[i], err)
		}
		s := &setting{series: gates.Series{Shape: names[i], Batch: batch}}
		if err := t.draw(s, shape, ref); err != nil {
			return err
		}
		t.memory = max(t.memory, s.layout.Size*batch)
		t.settings = append(t.settings, s)
	}
	return nil
}

func (t *table) draw(s *setting, shape kernels.Shape, ref *executable) error {
	m, toggles := t.worker.job.Manifest, t.worker.sides[runners.Candidate].toggles
	var reference *child
	for range max(s.series.Batch, inputSets) {
		p, err := problem.New(m, shape, toggles, tensor.Normal, t.rng.Uint64())
		if err != nil {
			return err
		}
		args := p.ReferenceArgs(false)
		if reference == nil {
			if reference, err = startChild(t.ctx, ref.path, layoutOf(args).Size, t.worker.config.LaunchTimeout); err != nil {
				return err
			}
			defer reference.close()
			s.layout = layoutOf(p.Args)
		}
		want, err := expected(reference, args)
		if err != nil {
			return err
		}
		s.sets, s.want = append(s.sets, p), append(s.want, want)
	}
	return nil
}

// batch is how many launches make a sample on this shape, so that the faster
// side's sample is still long enough. It is found once and kept for all rounds.
func (w *Worker) batch(ctx context.Context, shape kernels.Shape) (int, error) {
	if n := w.batches[shape.Name]; n > 0 {
		return n, nil
	}
	fastest := time.Duration(1<<63 - 1)
	for role, exe := range w.sides {
		p, err := problem.New(w.job.Manifest, shape, exe.toggles, tensor.Normal, 1)
		if err != nil {
			return 0, err
		}
		l := layoutOf(p.Args)
		c, err := startChild(ctx, exe.path, l.Size, w.config.LaunchTimeout)
		if err != nil {
			return 0, err
		}
		defer c.close()
		l.fill(c.memory, 0, p.Args)
		for range 5 {
			took, failure, err := c.launch(0, l.Size, 1)
			if err != nil {
				return 0, err
			}
			if failure != nil && role == runners.Baseline {
				return 0, fmt.Errorf("the baseline failed: %s", failure.Detail)
			}
			if failure != nil {
				break // the round itself will tell
			}
			fastest = min(fastest, took)
		}
	}
	n := int(min(max(sampleTime/max(fastest, 1), 1), maxBatch))
	w.batches[shape.Name] = n
	return n, nil
}

// alone times the baseline before anything else runs, a few samples a shape.
func (t *table) alone() error {
	for _, s := range t.settings {
		for i := range max(int(t.gate.Pairs)/4, 4) + 1 {
			took, err := t.sample(s, gates.SideBaseline)
			if err != nil {
				return fmt.Errorf("timing the baseline alone on %s: %w", s.series.Shape, err)
			}
			if i > 0 { // the first one warms up
				s.series.Solo = append(s.series.Solo, took)
			}
		}
	}
	return nil
}

// measure fills one shape's series: warm-up, then blocks of all three sides.
func (t *table) measure(s *setting) (*gates.Failure, error) {
	for side := range t.children {
		if _, err := t.sample(s, side); err != nil {
			return candidateFailure(err)
		}
	}
	s.series.Verified, s.series.Worst = 0, &gates.Errors{}
	order := runners.Blocks(t.rng, int(t.gate.Pairs))
	for _, block := range order {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		for _, side := range block {
			took, err := t.sample(s, side)
			if err != nil {
				return candidateFailure(err)
			}
			s.series.Nanos = append(s.series.Nanos, took)
		}
	}
	s.series.Order = strings.Join(order, " ")
	return nil, nil
}

// A failedError carries the candidate's failure up to the round, which records
// it as evidence.
type failedError struct{ gates.Failure }

func (e *failedError) Error() string { return e.Detail }

func candidateFailure(err error) (*gates.Failure, error) {
	if failed, ok := err.(*failedError); ok {
		return &failed.Failure, nil
	}
	return nil, err
}

// sample is one timed batch of one side: fresh input, poisoned output, clock,
// then a copy of the outputs before anything else. It returns the time of one
// launch in nanoseconds: the time that the kernel's process was running, for what
// it waited for a processor says something about the machine and nothing about
// the code.
func (t *table) sample(s *setting, side rune) (float64, error) {
	c, l, n := t.children[side], s.layout, s.series.Batch
	first := s.next
	s.next = (s.next + n) % len(s.sets)
	set := func(i int) int { return (first + i) % len(s.sets) }
	for i := range n {
		l.fill(c.memory, i*l.Size, s.sets[set(i)].Args)
	}
	before, _ := c.clock.read()
	took, failure, err := c.launch(0, l.Size, n)
	switch {
	case err != nil:
		return 0, err
	case failure != nil && side == gates.SideCandidate:
		return 0, &failedError{*failure}
	case failure != nil:
		return 0, fmt.Errorf("the baseline failed: %s", failure.Detail)
	}
	if after, ok := c.clock.read(); ok && after > before {
		s.series.Waited += float64((took - (after - before)).Nanoseconds())
		took = after - before
	}
	outputs := make([][][]byte, n)
	for i := range n {
		outputs[i] = l.outputs(c.memory, i*l.Size)
	}
	if side == gates.SideCandidate {
		for i := range n {
			if err := t.verify(s, c, i, set(i), outputs[i]); err != nil {
				return 0, err
			}
		}
	}
	return float64(took.Nanoseconds()) / float64(n), nil
}

func (t *table) verify(s *setting, c *child, slot, set int, output [][]byte) error {
	args := s.sets[set].Args
	if inputs, outside := s.layout.changed(c.memory, slot*s.layout.Size, args); len(inputs) > 0 {
		return &failedError{gates.Failure{Kind: "inputs", Detail: "the kernel wrote to its input " + strings.Join(inputs, ", ")}}
	} else if outside {
		return &failedError{gates.Failure{Kind: "out-of-bounds", Detail: "the kernel wrote outside its arguments"}}
	}
	e, err := runners.Compare(t.worker.job.Manifest, args, output, s.want[set])
	if err != nil {
		return err
	}
	s.series.Verified++
	if s.series.Worst == nil {
		s.series.Worst = &gates.Errors{}
	}
	runners.Worse(s.series.Worst, e)
	return nil
}
