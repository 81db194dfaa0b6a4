package change

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// NewResult is what a change remembers of a verdict.
func NewResult(v *gates.Verdict) Result {
	r := Result{
		Outcome: v.Outcome, Reason: v.Reason, Line: report.OneLine(v), Rule: v.Rule, Device: v.Device.Name,
		Speedups: map[string]float64{}, P50: map[string]float64{},
	}
	for _, c := range v.Comparisons {
		if c.Candidate != nil {
			r.P50[c.Shape] = c.Candidate.P50
		}
		if c.Role == gates.RoleTarget {
			r.Speedups[c.Shape] = c.Speedup.Value
		}
	}
	return r
}
