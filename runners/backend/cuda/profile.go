package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
)

const (
	profileTimeout = 3 * time.Minute
	warmLaunches   = 3 // before the one that is profiled
)

// Profile runs the candidate under ncu, shape by shape, and counts the gate's metrics. An obstacle
// for ncu is reported with its remedy, and is not the code's fault.
func (b *Backend) Profile(ctx context.Context, gate *policy.ProfileGate, p runners.Progress) (*gates.Profile, error) {
	ncu, err := inspect.FindNCU(ctx, b.config.Getenv)
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
		launches, entries, problem, err := b.profileShape(ctx, ncu, name, metrics)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			return &gates.Profile{Skipped: problem.String()}, nil
		}
		for i, l := range launches {
			for _, m := range l.Metrics {
				metric := gates.Metric{Shape: name, Name: m.Name, Value: m.Value, Unit: m.Unit}
				if len(entries) > 1 {
					metric.Step, metric.Kernel = i+1, entries[i]
				}
				// ncu adds its own metrics about device and launch.
				if slices.Contains(metrics, m.Name) || len(entries) > 1 && m.Name == gates.MetricDuration {
					result.Metrics = append(result.Metrics, metric)
				}
			}
		}
	}
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// profileShape counts every kernel of one launch; entries names them in order. If there are
// several, their times are counted, too.
func (b *Backend) profileShape(ctx context.Context, ncu inspect.NCU, name string, metrics []string) (launches []inspect.Launch, entries []string, problem *inspect.Problem, err error) {
	shape, _ := b.job.Manifest.Shape(name)
	request, err := b.request(ctx, worker.TaskLaunch)
	if err != nil {
		return nil, nil, nil, err
	}
	m := b.job.Of(b.job.Candidate)
	candidate, err := b.sides[runners.Candidate].Serving(m, shape.Dims)
	if err != nil {
		return nil, nil, nil, err
	}
	steps, err := m.Steps(candidate.Variant, shape.Dims, candidate.Toggles)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range steps {
		if s.Kernel() {
			entries = append(entries, s.Entry)
		}
	}
	if len(entries) > 1 && !slices.Contains(metrics, gates.MetricDuration) {
		metrics = append(slices.Clone(metrics), gates.MetricDuration)
	}
	request.Cases = []worker.Case{{Case: runners.Case{Shape: shape, Seed: 1, Distribution: distribution.Normal}}}
	request.Launch = warmLaunches + 1
	text, err := json.Marshal(request)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("writing the worker's request: %w", err)
	}
	file := filepath.Join(b.config.Scratch, "profile-"+name+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, nil, nil, fmt.Errorf("writing the worker's request: %w", err)
	}
	launches, problem, err = ncu.Run(ctx, inspect.ProfileRequest{
		Args: append(slices.Clone(b.config.Program), file), Env: b.workerEnv(), Kernels: slices.Sorted(maps.Values(candidate.Symbols)),
		Skip: warmLaunches * len(entries), Count: len(entries), Metrics: metrics,
		Report: filepath.Join(b.config.Scratch, "profile-"+name+".ncu-rep"), Timeout: profileTimeout,
	})
	if err != nil || problem != nil {
		return nil, nil, problem, err
	}
	return launches, entries, nil, inOrder(launches, entries, candidate.Symbols)
}

// inOrder checks that the profiler has seen the kernels of one launch, in this order.
func inOrder(launches []inspect.Launch, entries []string, symbols map[string]string) error {
	if len(launches) != len(entries) {
		return fmt.Errorf("ncu counted %d kernels of a launch of %d", len(launches), len(entries))
	}
	for i, l := range launches {
		if len(entries) > 1 && l.Kernel != symbols[entries[i]] {
			return fmt.Errorf("ncu has %s as kernel %d of the launch, which is %s", l.Kernel, i+1, entries[i])
		}
	}
	return nil
}
