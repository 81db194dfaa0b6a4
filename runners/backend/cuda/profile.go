package cuda

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	metrics := gate.Metrics()
	result, start := &gates.Profile{}, time.Now()
	for _, name := range gate.Shapes.Pick(b.job.ShapeNames()) {
		p.Report(runners.Event{Gate: gates.GateProfile, Text: name})
		all, problem, err := b.profileShape(ctx, ncu, profiling{shape: name, metrics: metrics})
		if err != nil {
			return nil, err
		}
		if problem != nil {
			return &gates.Profile{Skipped: problem.String()}, nil
		}
		result.Metrics = append(result.Metrics, all[0].metrics(name, metrics)...)
	}
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// A profiling is one run of ncu: of a launch of the candidate, or of the baseline, the candidate and the baseline again.
type profiling struct {
	shape    string
	both     bool
	metrics  []string
	sections []string
}

// warm is how often each side is launched before. Profiles of both sides need it less: each is one of three.
func (p profiling) warm() int {
	if p.both {
		return 1
	}
	return warmLaunches
}

// roles returns whose launches are profiled, in order.
func (p profiling) roles() []runners.Role {
	if p.both {
		return []runners.Role{runners.Baseline, runners.Candidate, runners.Baseline}
	}
	return []runners.Role{runners.Candidate}
}

// A profiled launch is its kernels in order, by their names in the manifest and in the code.
type profiled struct {
	entries []string
	symbols map[string]string
	kernels []inspect.Launch
}

// metrics returns the counters that were asked for. ncu adds further ones about device and launch.
// Kernels of a launch of several are weighed by their times.
func (l profiled) metrics(shape string, asked []string) []gates.Metric {
	var all []gates.Metric
	for i, k := range l.kernels {
		for _, m := range k.Metrics {
			metric := gates.Metric{Shape: shape, Name: m.Name, Value: m.Value, Unit: m.Unit}
			if len(l.entries) > 1 {
				metric.Step, metric.Kernel = i+1, l.entries[i]
			}
			if slices.Contains(asked, m.Name) || len(l.entries) > 1 && m.Name == gates.MetricDuration {
				all = append(all, metric)
			}
		}
	}
	return all
}

// profileShape counts every kernel of one launch of each role.
func (b *Backend) profileShape(ctx context.Context, ncu inspect.NCU, p profiling) (all []profiled, problem *inspect.Problem, err error) {
	kernels := map[string]bool{}
	metrics, launched, warm := slices.Clone(p.metrics), 0, 0
	for i, role := range p.roles() {
		l, err := b.launchOf(role, p.shape)
		if err != nil {
			return nil, nil, err
		}
		all, launched = append(all, l), launched+len(l.entries)
		if i < 2 { // each side warms up
			warm += len(l.entries) * p.warm()
		}
		for _, symbol := range l.symbols {
			kernels[symbol] = true
		}
		if len(l.entries) > 1 && !slices.Contains(metrics, gates.MetricDuration) {
			metrics = append(metrics, gates.MetricDuration)
		}
	}
	file, err := b.launchFile(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	report := strings.TrimSuffix(file, ".json") + ".ncu-rep"
	found, problem, err := ncu.Run(ctx, inspect.ProfileRequest{
		Args: append(slices.Clone(b.config.Program), file), Env: b.workerEnv(), Kernels: slices.Sorted(maps.Keys(kernels)),
		Skip: warm, Count: launched, Metrics: metrics, Sections: p.sections, Samples: p.both, Report: report, Timeout: profileTimeout,
	})
	if err != nil || problem != nil {
		return nil, problem, err
	}
	for i := range all {
		most := min(len(all[i].entries), len(found))
		all[i].kernels, found = found[:most], found[most:]
		if err := inOrder(all[i].kernels, all[i].entries, all[i].symbols); err != nil {
			return nil, nil, err
		}
	}
	return all, nil, nil
}

// launchOf returns the kernels of a launch of a role on a shape.
func (b *Backend) launchOf(role runners.Role, name string) (profiled, error) {
	shape, _ := b.job.Manifest.Shape(name)
	m := b.job.Of(b.sideOf(role))
	served, err := b.sides[role].Serving(m, shape.Dims)
	if err != nil {
		return profiled{}, err
	}
	steps, err := m.Steps(served.Variant, shape.Dims, served.Toggles)
	if err != nil {
		return profiled{}, err
	}
	l := profiled{symbols: served.Symbols}
	for _, s := range steps {
		if s.Kernel() {
			l.entries = append(l.entries, s.Entry)
		}
	}
	return l, nil
}

// launchFile writes the request for the process that launches.
func (b *Backend) launchFile(ctx context.Context, p profiling) (string, error) {
	shape, _ := b.job.Manifest.Shape(p.shape)
	request, err := b.request(ctx, worker.TaskLaunch)
	if err != nil {
		return "", err
	}
	request.Cases = []worker.Case{{Case: runners.Case{Shape: shape, Seed: 1, Distribution: distribution.Normal}}}
	name := "profile-"
	if request.Launch = p.warm() + 1; p.both {
		request.Launch, request.Both, name = p.warm(), true, "explain-"
	}
	text, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("writing the worker's request: %w", err)
	}
	file := filepath.Join(b.config.Scratch, name+p.shape+".json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("writing the worker's request: %w", err)
	}
	return file, nil
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
