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
	inputSets    = 4 // that samples rotate over at least
)

// Round measures the shapes in a fresh process.
func (b *Backend) Round(ctx context.Context, gate *policies.PerformanceGate, shapes []string, p runners.Progress) (gates.Round, error) {
	if b.plans == nil {
		if err := b.plan(ctx, shapes); err != nil {
			return gates.Round{}, fmt.Errorf("preparing to measure: %w", err)
		}
	}
	request := b.request(worker.TaskRound)
	request.Plans, request.Pairs, request.Seed = b.plans, int(gate.Pairs), b.rng.Uint64()>>16
	var round *gates.Round
	err := b.start(ctx, request, func(r worker.Reply) {
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

// plan finds out once how many launches make a sample on each shape, draws that
// many inputs, and has expected outputs computed for them. Rounds share them;
// what differs between rounds is the process, its memory and the order.
func (b *Backend) plan(ctx context.Context, shapes []string) error {
	m := b.job.Manifest
	var plans []worker.Plan
	set := func(name string, i int) worker.Case {
		shape, _ := m.Shape(name)
		return worker.Case{Shape: shape, Seed: b.rng.Uint64() >> 16, Distribution: tensor.Normal, File: fmt.Sprintf("set-%s-%d", name, i)}
	}
	for _, name := range shapes {
		plans = append(plans, worker.Plan{Shape: name, Batch: 1, Sets: []worker.Case{set(name, 0)}})
	}
	request := b.request(worker.TaskCalibrate)
	request.Plans = plans
	micros := map[string]float64{}
	if err := b.start(ctx, request, func(r worker.Reply) {
		if r.Micros != nil {
			micros = r.Micros
		}
	}); err != nil {
		return err
	}
	var sets []worker.Case
	for i := range plans {
		p := &plans[i]
		if t := micros[p.Shape]; t > 0 {
			p.Batch = int(min(max(math.Ceil(sampleMicros/t), 1), maxBatch))
		}
		p.Sets = nil
		for k := range max(p.Batch, inputSets) {
			p.Sets = append(p.Sets, set(p.Shape, k))
		}
		sets = append(sets, p.Sets...)
	}
	if err := b.expect(ctx, sets); err != nil {
		return err
	}
	b.plans = plans
	return nil
}
