package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	sampleMicros = 200 // an event ticks about every half microsecond
	maxBatch     = 32
)

// Round measures the shapes in fresh processes.
func (b *Backend) Round(ctx context.Context, gate *policies.PerformanceGate, shapes []string, p runners.Progress) (gates.Round, error) {
	if b.micros == nil { // correctness was not asked for, or compared by another process
		if err := b.cases(ctx, nil, nil); err != nil {
			return gates.Round{}, fmt.Errorf("preparing to measure: %w", err)
		}
	}
	request, err := b.request(ctx, worker.TaskRound)
	if err != nil {
		return gates.Round{}, err
	}
	request.Pairs = int(gate.Pairs)
	for _, d := range b.job.Rule().Gates.Correctness.Distributions {
		request.Distributions = append(request.Distributions, tensor.Distribution(d))
	}
	for _, name := range shapes {
		shape, _ := b.job.Manifest.Shape(name)
		request.Plans = append(request.Plans, worker.Plan{Shape: shape, Batch: batch(b.micros[name])})
	}
	var round *gates.Round
	err = b.start(ctx, request, func(r worker.Reply) {
		if r.Round != nil {
			round = r.Round
		}
		if r.Progress != "" {
			p.Report(runners.Event{Text: r.Progress})
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

// batch is how many launches make a sample that is long enough for the clock.
func batch(micros float64) int {
	if micros <= 0 {
		return 1
	}
	return int(min(max(math.Ceil(sampleMicros/micros), 1), maxBatch))
}
