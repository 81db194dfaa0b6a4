package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
)

const (
	sampleMicros = 200 // an event ticks about every half microsecond
	maxBatch     = 32
)

// Round measures the shapes in fresh processes.
func (b *Backend) Round(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape, progress runners.Progress) (gates.Round, error) {
	if b.micros == nil || !holds(b.calibrated, shapes) { // correctness was not asked for, or compared by another process
		failure, err := b.cases(ctx, nil, shapes, nil)
		if err != nil {
			return gates.Round{}, fmt.Errorf("preparing to measure: %w", err)
		}
		if failure != nil {
			return gates.Round{Failure: failure}, nil
		}
	}
	if b.tools != nil { // nobody asked for what they found, and nothing runs beside a round
		b.tools.stop()
		<-b.tools.done
		b.tools = nil
	}
	p, err := b.waiting(ctx, gate, shapes)
	if err != nil {
		return gates.Round{}, err
	}
	if !b.config.Turns {
		b.next = b.idle(ctx)
	}
	var round *gates.Round
	err = b.finish(p, func(r worker.Reply) {
		switch {
		case r.Round != nil:
			round = r.Round
		case r.Measured:
			b.open(ctx, gate, shapes)
		case r.Progress != "":
			progress.Report(runners.Event{Text: r.Progress})
		}
	})
	if err == nil && round == nil {
		err = errors.New("the worker measured nothing")
	}
	if err != nil {
		return gates.Round{}, err
	}
	return *round, nil
}

// A next is a worker that was started for a round before anybody asked for it.
// Whether the round comes is not known; without it the worker ends with the gate.
type next struct {
	process *process
	shapes  []manifest.Shape // that it was asked to measure; nil is not asked yet
}

// idle starts the next round's process while this one is measured. It does not run
// and touches no GPU meanwhile, and a failure to start is told when the round comes.
func (b *Backend) idle(ctx context.Context) *next {
	p, err := b.spawn(ctx)
	if err != nil {
		return nil
	}
	return &next{process: p}
}

// timed lists the shapes that the rule wants timed.
func (b *Backend) timed() []manifest.Shape {
	record, err := b.job.ShapesToTime(b.seed)
	if err != nil {
		return nil
	}
	shapes, err := b.job.TimedShapes(&gates.Evidence{Shapes: record})
	if err != nil {
		return nil // the round itself will tell
	}
	return shapes
}

// holds tells whether all of some shapes are among those that are there, with their sizes.
func holds(there, some []manifest.Shape) bool {
	return !slices.ContainsFunc(some, func(s manifest.Shape) bool {
		return !slices.ContainsFunc(there, func(t manifest.Shape) bool { return t.String() == s.String() })
	})
}

// firstRound has the first round's contexts made while nothing is timed yet.
func (b *Backend) firstRound() {
	if b.micros == nil || b.next != nil || b.sides[runners.Baseline] == nil || b.config.Turns {
		return
	}
	if shapes := b.timed(); len(shapes) > 0 {
		b.next = b.idle(b.whole)
		b.open(b.whole, b.job.Rule().Gates.Performance, shapes)
	}
}

// open has the next round's contexts made while this one's outputs are compared; the
// worker holds until its round comes.
func (b *Backend) open(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape) {
	request, err := b.roundRequest(ctx, gate, shapes)
	if err == nil && b.next != nil && b.next.process.ask(request) == nil {
		b.next.shapes = shapes
	} // otherwise the round itself will tell
}

// waiting is a worker for a round: the one that is there already, or a new one.
func (b *Backend) waiting(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape) (*process, error) {
	n := b.next
	b.next = nil
	if n != nil && n.process.ctx.Err() == nil && len(n.shapes) == len(shapes) && holds(n.shapes, shapes) {
		return n.process, nil
	}
	if n != nil {
		n.process.cancel(nil)
	}
	request, err := b.roundRequest(ctx, gate, shapes)
	if err != nil {
		return nil, err
	}
	p, err := b.spawn(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.ask(request); err != nil {
		p.cancel(nil)
		return nil, err
	}
	return p, nil
}

func (b *Backend) roundRequest(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape) (worker.Request, error) {
	request, err := b.request(ctx, worker.TaskRound)
	if err != nil {
		return request, err
	}
	request.Pairs, request.Hold = int(gate.Pairs), true
	for _, d := range b.job.Rule().Gates.Correctness.Distributions {
		request.Distributions = append(request.Distributions, distribution.Kind(d))
	}
	for _, shape := range shapes {
		request.Plans = append(request.Plans, worker.Plan{Shape: shape, Batch: batch(b.micros[shape.Name])})
	}
	return request, nil
}

// batch is how many launches make a sample that is long enough for the clock.
func batch(micros float64) int {
	if micros <= 0 {
		return 1
	}
	return int(min(max(math.Ceil(sampleMicros/micros), 1), maxBatch))
}
