package gather

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// The notes say which configurations there are, which one was measured, and what it was picked from.
func TestTuningNotes(t *testing.T) {
	offered := []string{"BLOCK=64, num_warps=2", "BLOCK=128, num_warps=4"}
	picked := func(micros ...float64) *gates.Tuning {
		pick := gates.TuningPick{Shape: "small", Configuration: offered[0], Micros: micros[0]}
		for i, m := range micros {
			pick.Times = append(pick.Times, gates.TuningTime{Configuration: offered[i], Micros: m})
		}
		return &gates.Tuning{Offered: offered[:len(micros)], Picks: []gates.TuningPick{pick}}
	}
	chosen := &gates.Tuning{Offered: offered, Chosen: offered[1:]}
	for name, c := range map[string]struct {
		baseline, candidate *gates.Tuning
		want                string
	}{
		"no decorator":    {nil, nil, ""},
		"chosen":          {chosen, chosen, "@triton.autotune offers 2 configurations. Measured is what the manifest chooses: BLOCK=128, num_warps=4."},
		"without a GPU":   {nil, &gates.Tuning{Offered: offered[:1]}, "The change edits the configurations of @triton.autotune, from 0 configurations to 1 configuration: + BLOCK=64, num_warps=2.\n@triton.autotune offers 1 configuration. Measured is the fastest one of each shape, which a runner with a GPU finds."},
		"picked":          {picked(12.345, 20), picked(12.345, 20), "@triton.autotune offers 2 configurations. Measured is the fastest of each shape: BLOCK=64, num_warps=2 at small (12.35 µs, the slowest of 2 20 µs)."},
		"each for itself": {picked(12.5), picked(10, 20), "The change edits the configurations of @triton.autotune, from 1 configuration to 2 configurations: + BLOCK=128, num_warps=4.\n@triton.autotune offers 2 configurations. Measured is the fastest of each shape: BLOCK=64, num_warps=2 at small (10 µs, the slowest of 2 20 µs); for the baseline the fastest of each shape: BLOCK=64, num_warps=2 at small (12.5 µs)."},
		"another order":   {chosen, &gates.Tuning{Offered: []string{offered[1], offered[0]}, Chosen: offered[1:]}, "The change edits the configurations of @triton.autotune, from 2 configurations to 2 configurations: their order.\n@triton.autotune offers 2 configurations. Measured is what the manifest chooses: BLOCK=128, num_warps=4."},
		"one is refused":  {chosen, &gates.Tuning{Offered: offered, Chosen: offered[1:], Refused: []string{"BLOCK=64: too large"}}, "@triton.autotune offers 2 configurations. Measured is what the manifest chooses: BLOCK=128, num_warps=4.\nNot every configuration of @triton.autotune compiles, and Triton's own tuner would pass over it: BLOCK=64: too large."},
	} {
		if got := strings.Join(tuningNotes(c.baseline, c.candidate), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
