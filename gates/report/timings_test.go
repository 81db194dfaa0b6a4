package report

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// The time of every step is shown with what its work took; what is missing went into starting and waiting.
func TestTimings(t *testing.T) {
	e := &gates.Evidence{
		Device:      gates.Device{Kind: gates.DeviceGPU},
		Took:        map[gates.Gate]float64{gates.GateBuild: 0.25, gates.GateCorrectness: 4, gates.GatePerformance: 3},
		Correctness: &gates.Correctness{Spent: gates.Spent{gates.WorkInputs: 0.5, gates.WorkReference: 2}},
		Performance: &gates.Performance{Rounds: []gates.Round{
			{Spent: gates.Spent{gates.WorkInputs: 0.25, gates.WorkLaunches: 1}},
			{Spent: gates.Spent{gates.WorkInputs: 0.25, gates.WorkLaunches: 1}},
		}},
	}
	const want = `  step                   seconds  memory  inputs  launches  comparisons  reference  start and wait
  ─────────────────────  ───────  ──────  ──────  ────────  ───────────  ─────────  ──────────────
  build                     0.25
  correctness               4.00    0.00    0.50      0.00         0.00       2.00            1.50
  performance, 2 rounds     3.00    0.00    0.50      2.00         0.00       0.00            0.50
  everything else           0.75
  total                     8.00

The GPU drew inputs, ran the kernels or compared outputs in 38 % of this time.
`
	if got := TerminalTimings(e, 8, TerminalOptions{Width: 120}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.Device.Kind, e.Correctness.Spent, e.Performance.Rounds = gates.DeviceCPU, nil, nil
	const plain = `  step             seconds
  ───────────────  ───────
  build               0.25
  correctness         4.00
  performance         3.00
  everything else     0.75
  total               8.00
`
	if got := TerminalTimings(e, 8, TerminalOptions{Width: 120}); got != plain {
		t.Errorf("got\n%s\nwant\n%s", got, plain)
	}
}
