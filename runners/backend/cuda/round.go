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
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
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
	if b.tools != nil { // nobody asked for their result, and nothing runs during a round
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

// A next is a worker that was started ahead of a round. The round may never come; then the worker
// ends with the gate.
type next struct {
	process *process
	shapes  []manifest.Shape // the request to measure; nil before it is made
}

// idle starts the process of the next round during this one. The process does nothing and does not
// touch the GPU meanwhile. If it fails to start, the next round reports that.
func (b *Backend) idle(ctx context.Context) *next {
	p, err := b.spawn(ctx)
	if err != nil {
		return nil
	}
	return &next{process: p}
}

// timed returns the shapes that the rule asks to time.
func (b *Backend) timed() []manifest.Shape {
	record, err := b.job.ShapesToTime(b.seed)
	if err != nil {
		return nil
	}
	shapes, err := b.job.TimedShapes(&gates.Evidence{Shapes: record})
	if err != nil {
		return nil // the round itself reports it
	}
	return shapes
}

// holds reports whether all of the given shapes are available with their sizes.
func holds(there, some []manifest.Shape) bool {
	return !slices.ContainsFunc(some, func(s manifest.Shape) bool {
		return !slices.ContainsFunc(there, func(t manifest.Shape) bool { return t.String() == s.String() })
	})
}

// firstRound creates the contexts of the first round while nothing is timed yet.
func (b *Backend) firstRound() {
	if b.micros == nil || b.next != nil || b.sides[runners.Baseline] == nil || b.config.Turns {
		return
	}
	if shapes := b.timed(); len(shapes) > 0 {
		b.next = b.idle(b.whole)
		b.open(b.whole, b.job.Rule().Gates.Performance, shapes)
	}
}

// open creates the contexts of the next round while this round's outputs are compared. The worker
// then waits for its round.
func (b *Backend) open(ctx context.Context, gate *policy.PerformanceGate, shapes []manifest.Shape) {
	request, err := b.roundRequest(ctx, gate, shapes)
	if err == nil && b.next != nil && b.next.process.ask(request) == nil {
		b.next.shapes = shapes
	} // otherwise the round itself reports it
}

// waiting returns a worker for a round: the prepared one, or a new one.
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
	request.Hold = true
	if gate != nil {
		request.Pairs = int(gate.Pairs)
	}
	request.Separation = gates.SeparationOf(b.job.Rule().Gates.Correctness)
	request.Distributions = distribution.Random(b.job.Rule().Gates.Correctness.Distributions)
	for _, shape := range shapes {
		request.Plans = append(request.Plans, worker.Plan{Shape: shape, Batch: batch(b.micros[shape.Name]), Kinds: b.job.TimedKinds(shape.Listed())})
	}
	return request, nil
}

// batch returns how many launches make a sample that is long enough for the clock.
func batch(micros float64) int {
	if micros <= 0 {
		return 1
	}
	return int(min(max(math.Ceil(sampleMicros/micros), 1), maxBatch))
}
