package command

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels"
)

// RivalOptions says how a rival is timed.
type RivalOptions struct {
	Dir       string          // folder of the base's kernel, which the rival's files lie in
	Shapes    []kernels.Shape // that it is asked for
	Unit      kernels.Unit    // of "times"; default us
	Samples   int             // launches of each shape in a process; default 50
	Processes int             // fresh ones; default 3
}

// A RivalTime is how long another implementation takes on one shape: all its
// launches in all processes, in microseconds. It is for information; no gate
// reads it.
type RivalTime struct {
	Name  string        `json:"name"`
	Shape string        `json:"shape"`
	Stats stats.Summary `json:"stats"`
}

// RunRival times a rival of a manifest of any mode the way a round times a
// side. A rival prints times as bench does, and no figures; shapes that it does
// not print are left out, for a rival need not support all.
func RunRival(ctx context.Context, rival kernels.Rival, run RivalOptions, config Config) ([]RivalTime, error) {
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	if run.Unit == "" {
		run.Unit = "us"
	}
	if run.Samples == 0 {
		run.Samples = 50
	}
	if run.Processes == 0 {
		run.Processes = 3
	}
	h := config.harness(rival.Command, run.Dir)
	v := vocabulary{asked: run.Shapes, unit: run.Unit}
	times := map[string][]float64{}
	for i := range run.Processes {
		r := request{mode: performance, shapes: run.Shapes, seed: config.Seed>>16 + uint64(i), samples: run.Samples}
		out, failure, err := h.run(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("timing the rival %s: %w", rival.Name, err)
		}
		said, failure := v.understand(out, failure, needs{times: true})
		if failure == nil && len(said.times) == 0 {
			return nil, fmt.Errorf("timing the rival %s: it printed no times (print lines such as {\"shape\":…,\"us\":[…]})", rival.Name)
		}
		if failure != nil {
			return nil, fmt.Errorf("timing the rival %s: %s (run its command by hand; folders that it reads beside its own are named in KERNELGATE_READ)", rival.Name, failure.Detail)
		}
		for shape, nanos := range said.times {
			for _, ns := range nanos {
				times[shape] = append(times[shape], ns/1e3)
			}
		}
	}
	var all []RivalTime
	for _, s := range run.Shapes {
		if micros := times[s.Name]; len(micros) > 0 {
			all = append(all, RivalTime{Name: rival.Name, Shape: s.Name, Stats: stats.Describe(micros)})
		}
	}
	return all, nil
}
