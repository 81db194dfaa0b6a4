package gates

import "github.com/kernelgate/kernelgate/gates/stats"

// unjudgedError is the error rate of the intervals of times that nobody judged, on each side.
const unjudgedError = 0.025

// UnjudgedTimes is the times of a verdict that ended at an earlier gate, or found wrong outputs while it timed. They have no goal and
// no status: a kernel that computes something else may take any time. They are nil where nothing was timed.
func UnjudgedTimes(e *Evidence) []Comparison {
	if e.Performance == nil || len(e.Performance.Rounds) == 0 {
		return nil
	}
	var all []Comparison
	for _, p := range PairedSpeeds(e, unjudgedError, unjudgedError) {
		if p.Same || p.Baseline <= 0 || p.Candidate <= 0 {
			continue
		}
		all = append(all, Comparison{
			Shape: p.Shape, Dims: p.Dims, Role: RoleInfo, Status: NotRun,
			Baseline: &stats.Summary{P50: round(p.Baseline)}, Candidate: &stats.Summary{P50: round(p.Candidate)},
			Speedup: Estimate{Value: round(p.Speed - 1), Lower: rounded(p.Lower - 1), Upper: rounded(p.Upper - 1)},
		})
	}
	return all
}
