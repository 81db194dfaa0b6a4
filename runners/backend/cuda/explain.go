package cuda

import (
	"context"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
)

// explainSections are ncu's groups with the metrics of package why that are derived or sampled. The others are asked for by name;
// a GPU that lacks one is asked for the rest.
var explainSections = []string{"LaunchStats", "Occupancy", "WarpStateStats", "SourceCounters"}

// Explain profiles the baseline, the candidate and the baseline once more, in one process: starting ncu takes longer than the
// launches. A candidate could disturb the baseline there. It would only spoil its own explanation, which decides nothing.
func (b *Backend) Explain(ctx context.Context, ask runners.Explanation, p runners.Progress) (*gates.Explained, *gates.Profile, error) {
	ncu, err := inspect.FindNCU(ctx, b.config.Getenv)
	if err != nil {
		return &gates.Explained{Skipped: err.Error()}, nil, nil
	}
	found, counted, start := &gates.Explained{Tool: "ncu " + ncu.Version}, &gates.Profile{}, time.Now()
	metrics := countersWith(ask.Metrics)
	for _, name := range ask.Shapes {
		p.Report(runners.Event{Gate: gates.GateProfile, Text: name})
		all, problem, err := b.profileShape(ctx, ncu, profiling{shape: name, both: true, metrics: metrics, sections: explainSections})
		if err != nil {
			return nil, nil, err
		}
		if problem != nil {
			return &gates.Explained{Skipped: problem.String()}, nil, nil
		}
		shape := gates.ExplainedShape{Shape: name, Baseline: all[0].counted(), Candidate: all[1].counted(), Again: all[2].counted()}
		for _, err := range []error{
			b.sample(ctx, all[0], b.launched(runners.Baseline, name), shape.Baseline), b.sample(ctx, all[1], b.launched(runners.Candidate, name), shape.Candidate),
		} {
			if err != nil {
				found.Unsampled = err.Error()
			}
		}
		found.Shapes = append(found.Shapes, shape)
		counted.Metrics = append(counted.Metrics, all[1].metrics(name, ask.Metrics)...)
	}
	counted.Seconds = time.Since(start).Seconds()
	return found, counted, nil
}

// countersWith returns the counters of package why and the metrics that a gate asks for, each once.
func countersWith(asked []string) []string {
	all := slices.Concat(why.Counters, asked)
	slices.Sort(all)
	return slices.Compact(all)
}

// counted returns the counters of each kernel of a launch.
func (l profiled) counted() []gates.Counted {
	var all []gates.Counted
	for i, k := range l.kernels {
		c := gates.Counted{Kernel: l.entries[i], Counters: map[string]float64{}}
		for _, m := range k.Metrics {
			if why.Reads(m.Name) && len(c.Counters) < gates.MaxCounters {
				c.Counters[m.Name] = m.Value
			}
		}
		all = append(all, c)
	}
	return all
}
