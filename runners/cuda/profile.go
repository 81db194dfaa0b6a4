package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/profile"
)

const (
	profileTimeout = 3 * time.Minute
	warmLaunches   = 3 // before the one that is profiled
)

// Profile runs the candidate under ncu, shape by shape, and counts the metrics
// that the gate names. What keeps ncu from counting is told with its remedy, and
// is no fault of the code.
func (b *Backend) Profile(ctx context.Context, gate *policies.ProfileGate, p runners.Progress) (*gates.Profile, error) {
	ncu, err := profile.Find(ctx, b.config.Getenv)
	if err != nil {
		return &gates.Profile{Skipped: err.Error()}, nil
	}
	var metrics []string
	for _, c := range slices.Concat(gate.All, gate.Any) {
		metrics = append(metrics, c.Metric)
	}
	slices.Sort(metrics)
	metrics = slices.Compact(metrics)
	result, start := &gates.Profile{}, time.Now()
	for _, name := range gate.Shapes.Pick(b.job.ShapeNames()) {
		p.Report(runners.Event{Gate: gates.GateProfile, Text: name})
		launches, problem, err := b.profileShape(ctx, ncu, name, metrics)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			return &gates.Profile{Skipped: problem.String()}, nil
		}
		for _, l := range launches {
			for _, m := range l.Metrics {
				if !slices.Contains(metrics, m.Name) {
					continue // ncu adds what it knows of device and launch
				}
				result.Metrics = append(result.Metrics, gates.Metric{Shape: name, Name: m.Name, Value: m.Value, Unit: m.Unit})
			}
		}
	}
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

func (b *Backend) profileShape(ctx context.Context, ncu profile.NCU, name string, metrics []string) ([]profile.Launch, *profile.Problem, error) {
	shape, _ := b.job.Manifest.Shape(name)
	request, err := b.request(ctx, worker.TaskLaunch)
	if err != nil {
		return nil, nil, err
	}
	request.Cases = []worker.Case{{Shape: shape, Seed: 1, Distribution: kernels.Normal}}
	request.Launch = warmLaunches + 1
	text, err := json.Marshal(request)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the worker's request: %w", err)
	}
	file := filepath.Join(b.config.Scratch, "profile-"+name+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, nil, fmt.Errorf("writing the worker's request: %w", err)
	}
	serving, err := b.sides[runners.Candidate].Serving(b.job.Of(b.job.Candidate), shape.Dims)
	if err != nil {
		return nil, nil, err
	}
	return ncu.Run(ctx, profile.Request{
		Args: append(slices.Clone(b.config.Program), file), Env: workerEnv(b.config.Getenv), Kernel: serving.Entry,
		Skip: warmLaunches, Count: 1, Metrics: metrics,
		Report: filepath.Join(b.config.Scratch, "profile-"+name+".ncu-rep"), Timeout: profileTimeout,
	})
}
