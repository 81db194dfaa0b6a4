package gates

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// performanceSummaries judges figures without their samples. Where the report
// has a spread and a count, the interval over launches is used: it knows nothing
// of the noise between processes and is too narrow, so it can only keep a
// doubtful figure from passing, and the verdict says so.
func (j *judgement) performanceSummaries(gate *policy.PerformanceGate, summaries []Summary) GateResult {
	goals, _ := goalsOf(gate, j.evidence)
	alpha := (1 - float64(gate.Confidence)) / 2
	z := math.Sqrt2 * math.Erfinv(1-2*alpha)
	var passed, failed, open []string
	reason := ReasonTooSlow
	judged := 0
	for _, s := range summaries {
		row := Comparison{Shape: s.Shape, Role: RoleInfo, Status: NotRun}
		var goal *policy.Goal
		for _, g := range goals {
			if g.shape.Name == s.Shape {
				row.Dims, row.Role, goal = g.shape.Dims, g.role, g.goal
			}
		}
		row.Baseline, row.Candidate = s.Baseline.summary(), s.Candidate.summary()
		row.Speedup = s.speedup(z)
		row.LatencyReduction = reductionOf(row.Speedup)
		if goal != nil {
			row.Goal, row.Status = goal.String(), s.against(goal, row.Speedup)
			text := fmt.Sprintf("speedup %s on %s (asked %s)", estimate(row.Speedup), s.Shape, goal)
			switch row.Status {
			case Passed:
				passed = append(passed, text)
			case Failed:
				failed = append(failed, text)
				if row.Role == RoleGuard {
					reason = ReasonRegression
				}
			default:
				open = append(open, text)
			}
			if row.Role == RoleTarget || gate.Target == nil {
				judged++
			}
		}
		j.comparisons = append(j.comparisons, row)
	}
	var missing []string
	for _, g := range goals {
		if g.role == RoleTarget && !slices.ContainsFunc(summaries, func(s Summary) bool { return s.Shape == g.shape.Name }) {
			missing = append(missing, g.shape.Label())
		}
	}
	j.notes = append(j.notes, "The times are summaries of an older report: point estimates without the noise between processes.")
	switch {
	case len(failed) > 0:
		word := "Too slow: "
		if reason == ReasonRegression {
			word = "Slower: "
		}
		return GateResult{Status: Failed, Reason: reason, Text: word + strings.Join(failed, "; "), ToPass: []string{"gain more, then measure with kernelgate check"}}
	case len(missing) > 0:
		return GateResult{Status: Missing, Text: "the report has no figures for " + strings.Join(missing, ", ")}
	case judged == 0:
		return GateResult{Status: Missing, Text: "the report has no figures for the shapes that are asked"}
	case len(open) > 0:
		return GateResult{Status: Open, Reason: ReasonInconclusive, Text: "Not decided by the report's figures: " + strings.Join(open, "; "), ToPass: []string{"measure with kernelgate check"}}
	}
	return GateResult{Status: Passed, Text: "As reported: " + strings.Join(passed, "; ")}
}

func (s Summary) speedup(z float64) Estimate {
	ratio := s.Baseline.P50 / s.Candidate.P50
	e := Estimate{Value: round(ratio - 1)}
	b, okB := s.Baseline.logError()
	c, okC := s.Candidate.logError()
	if okB && okC {
		reach := z * math.Hypot(b, c)
		e.Lower, e.Upper = rounded(ratio*math.Exp(-reach)-1), rounded(ratio*math.Exp(reach)-1)
	}
	return e
}

// logError is the relative standard error of a median, as if launches were
// independent.
func (f Figures) logError() (float64, bool) {
	if f.Std == nil || f.N < 2 {
		return 0, false
	}
	return math.Sqrt(math.Pi/2) * *f.Std / f.P50 / math.Sqrt(float64(f.N)), true
}

func (f Figures) summary() *stats.Summary {
	get := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	s := &stats.Summary{N: f.N, P50: f.P50, P90: get(f.P90), P99: get(f.P99), Mean: get(f.Mean), Std: get(f.Std)}
	if s.Mean > 0 {
		s.CV = round(s.Std / s.Mean)
	}
	return s
}

func (s Summary) against(goal *policy.Goal, speedup Estimate) Status {
	status := Passed
	worst := func(next Status) {
		if next == Failed || (next == Open && status == Passed) {
			status = next
		}
	}
	low, high := speedup.Value, speedup.Value
	if speedup.Lower != nil {
		low, high = *speedup.Lower, *speedup.Upper
	}
	interval := func(holds func(float64) bool, low, high float64) {
		switch {
		case holds(low):
			worst(Passed)
		case holds(high):
			worst(Open)
		default:
			worst(Failed)
		}
	}
	if b := goal.Speedup; b != nil {
		interval(b.Holds, low, high)
	}
	if b := goal.LatencyReduction; b != nil {
		interval(b.Holds, 1-1/(1+low), 1-1/(1+high))
	}
	if b := goal.P50; b != nil {
		interval(b.Holds, s.Candidate.P50, s.Candidate.P50)
	}
	if b := goal.P90; b != nil {
		if s.Candidate.P90 == nil {
			worst(Open)
		} else {
			interval(b.Holds, *s.Candidate.P90, *s.Candidate.P90)
		}
	}
	return status
}
