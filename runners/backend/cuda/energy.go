package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
)

// Energy measures the shapes of the gate in fresh processes of both sides.
func (b *Backend) Energy(ctx context.Context, gate *policy.EnergyGate, p runners.Progress) (*gates.Energy, error) {
	var shapes []manifest.Shape
	for _, name := range gate.Shapes.Pick(b.job.ShapeNames()) {
		shape, _ := b.job.Manifest.Shape(name)
		shapes = append(shapes, shape)
	}
	if len(shapes) == 0 {
		return &gates.Energy{}, nil
	}
	if b.micros == nil || !holds(b.calibrated, shapes) {
		micros, calibrated := b.micros, b.calibrated
		failure, err := b.cases(ctx, nil, shapes, nil)
		if err != nil || failure != nil {
			return &gates.Energy{Failure: failure}, err
		}
		defer func() { b.micros, b.calibrated = micros, calibrated }()
	}
	b.stopNext()
	request, err := b.roundRequest(ctx, b.job.Rule().Gates.Performance, nil)
	if err != nil {
		return nil, err
	}
	request.Task, request.Hold = worker.TaskEnergy, false
	for _, shape := range shapes {
		request.Plans = append(request.Plans, worker.Plan{Shape: shape, Batch: worker.PassLaunches(b.micros[shape.Name])})
	}
	var found *gates.Energy
	err = b.start(ctx, request, func(r worker.Reply) {
		switch {
		case r.Energy != nil:
			found = r.Energy
		case r.Progress != "":
			p.Report(runners.Event{Gate: gates.GateEnergy, Text: r.Progress})
		}
	})
	if err == nil && found == nil {
		err = errors.New("the worker measured nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("measuring the energy of launches: %w", err)
	}
	return found, nil
}

// stopNext ends a worker that was started ahead of a round: nothing else may use the GPU now.
func (b *Backend) stopNext() {
	if b.next != nil {
		b.next.process.cancel(nil)
		b.next = nil
	}
}
