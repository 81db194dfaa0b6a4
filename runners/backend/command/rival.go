package command

import (
	"context"
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

const (
	// rivalProcesses is how many fresh processes time a rival. Two show whether the times depend on
	// the process. The times of a rival decide nothing.
	rivalProcesses = 2
	rivalSamples   = 50 // launches of each shape in a process
)

// RunRival times a rival of a manifest of any mode, as a round times a side: all its launches in
// all processes, in microseconds. A rival prints times as bench does, and no figures. Shapes that
// it does not print are left out, because a rival need not support all. Its files lie in dir, the
// folder of the base's kernel.
func RunRival(ctx context.Context, rival manifest.Rival, dir string, shapes []manifest.Shape, config Config) ([]gates.Rival, error) {
	config, err := config.filled()
	if err != nil {
		return nil, err
	}
	h := config.harness(rival.Command, dir)
	v := vocabulary{asked: shapes, unit: "us"}
	times := map[string][]float64{}
	for i := range uint64(rivalProcesses) {
		r := request{mode: performance, shapes: shapes, seed: config.Seed>>16 + i, samples: rivalSamples}
		out, failure, err := h.run(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("timing the rival %s: %w", rival.Name, err)
		}
		said, failure := v.understand(out, failure, needs{times: true})
		if failure == nil && len(said.times) == 0 {
			return nil, fmt.Errorf("timing the rival %s: it printed no times (print lines such as {\"shape\":…,\"us\":[…]})", rival.Name)
		}
		if failure != nil {
			return nil, fmt.Errorf("timing the rival %s: %s (run its command by hand; KERNELGATE_READ names further folders that it may read)", rival.Name, failure.Detail)
		}
		for shape, nanos := range said.times {
			for _, ns := range nanos {
				times[shape] = append(times[shape], ns/1e3)
			}
		}
	}
	var all []gates.Rival
	for _, s := range shapes {
		if micros := times[s.Name]; len(micros) > 0 {
			all = append(all, gates.Rival{Name: rival.Name, Shape: s.Name, Stats: stats.Describe(micros)})
		}
	}
	return all, nil
}
