package cpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/why"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
)

// Each side is counted up to countings times; none begins after countingTime. The median counts, because others use the machine, too.
const (
	countings    = 7
	countingTime = 2 * time.Second
)

// Explain counts the events of both sides, and those of the baseline once more, in turn and on the same inputs.
func (w *Worker) Explain(ctx context.Context, ask runners.Explanation, p runners.Progress) (*gates.Explained, *gates.Profile, error) {
	found := &gates.Explained{Tool: "perf events"}
	for _, name := range ask.Shapes {
		p.Report(runners.Event{Gate: gates.StepExplain, Text: name})
		shape, _ := w.job.Manifest.Shape(name)
		counted, err := w.countShape(ctx, shape, events)
		var no *uncountable
		if errors.As(err, &no) {
			return &gates.Explained{Skipped: no.Error()}, nil, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("counting events on %s: %w", name, err)
		}
		found.Shapes = append(found.Shapes, *counted)
	}
	return found, nil, nil
}

// countShape counts events of both sides on one shape.
func (w *Worker) countShape(ctx context.Context, shape manifest.Shape, events []event) (*gates.ExplainedShape, error) {
	batch, err := w.batch(ctx, shape)
	if err != nil {
		return nil, err
	}
	d, err := newDrawer(w.job.Of(w.job.Candidate), shape, w.sides[runners.Candidate].toggles)
	if err != nil {
		return nil, err
	}
	if d.recordings, err = w.recordings(); err != nil {
		return nil, err
	}
	sides := []struct {
		role runners.Role
		all  []map[string]float64
	}{{role: runners.Baseline}, {role: runners.Candidate}, {role: runners.Baseline}}
	children, entries := map[runners.Role]*child{}, map[runners.Role]string{}
	for _, role := range []runners.Role{runners.Baseline, runners.Candidate} {
		exe, err := w.sides[role].serving(shape.Dims)
		if err != nil {
			return nil, err
		}
		c, err := startChild(ctx, exe.path, d.layout.Size*batch, exe.threads, w.config.LaunchTimeout)
		if err != nil {
			return nil, err
		}
		defer c.close()
		children[role], entries[role] = c, cmp.Or(exe.symbol, exe.manifest.Entry)
	}
	start := time.Now()
	for n := range countings {
		if n > 0 && time.Since(start) > countingTime {
			break
		}
		seeds := make([]uint64, batch)
		for i := range seeds {
			seeds[i] = w.rng.Uint64()
		}
		if err := d.draw(w.random(shape.Name), seeds); err != nil {
			return nil, err
		}
		for i := range sides {
			counts, failure, err := children[sides[i].role].countOn(d.images[:batch], events)
			if err != nil {
				return nil, err
			}
			if failure != nil {
				return nil, fmt.Errorf("the %s failed: %s", sides[i].role, failure.Detail)
			}
			sides[i].all = append(sides[i].all, counts)
		}
	}
	counted := func(i int) []gates.Counted {
		return []gates.Counted{{Kernel: entries[sides[i].role], Counters: medians(sides[i].all)}}
	}
	return &gates.ExplainedShape{Shape: shape.Name, Baseline: counted(0), Candidate: counted(1), Again: counted(2)}, nil
}

// medians returns the median of each counter that was counted every time.
func medians(all []map[string]float64) map[string]float64 {
	found := map[string]float64{}
	for name := range all[0] {
		var values []float64
		for _, counts := range all {
			if v, ok := counts[name]; ok && why.Reads(name) {
				values = append(values, v)
			}
		}
		if len(values) == len(all) {
			slices.Sort(values)
			found[name] = values[len(values)/2]
		}
	}
	return found
}
