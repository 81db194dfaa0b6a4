package gates

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/why"
)

// An explanation on a CPU uses what was counted, the times of the rounds and the instructions of the builds. If nothing was counted, it
// uses the other two.
func TestExplainOnCPU(t *testing.T) {
	e := passing()
	e.Mode = "cpu"
	shape := e.Shapes[0].Name
	e.MachineCode = &MachineCode{Changes: []CodeChange{{Kernel: "k", Baseline: &Instructions{Other: 400}, Candidate: &Instructions{Other: 600, Vector: 22}}}}
	compared := []Comparison{{Shape: shape, Baseline: &stats.Summary{P50: 4}, Candidate: &stats.Summary{P50: 1}}}
	for name, counters := range map[string]map[string]float64{
		"nothing": nil, "page faults": {why.CPUTime: 4000, why.CPUPageFaults: 0},
	} {
		side := []Counted{{Kernel: "k", Counters: counters}}
		e.Explained = &Explained{Shapes: []ExplainedShape{{Shape: shape, Baseline: side, Again: side, Candidate: side}}}
		w := Explain(e, compared)[0]
		if w.Cause != why.NoVectors || !w.Faster || w.Explanation.Baseline.Micros != 4 || w.Explanation.Candidate.Micros != 1 {
			t.Errorf("%s: %+v", name, w)
		}
		if counters["gpu__time_duration.sum"] != 0 {
			t.Errorf("%s: the evidence has become %v", name, counters)
		}
	}
	// Of a choice on a CPU it is not known whose code serves the shape.
	e.MachineCode.Changes = append(e.MachineCode.Changes, CodeChange{Kernel: "other", Baseline: &Instructions{Other: 400}, Candidate: &Instructions{Other: 400}})
	if w := Explain(e, compared)[0]; w.Cause != "" {
		t.Errorf("of two kernels: %+v", w)
	}
}
