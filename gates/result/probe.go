package result

import (
	"math"

	"github.com/kernelgate/kernelgate/gates"
)

// step is what the figures of a probe are rounded to. An author who asks again and again learns from
// each answer in which step the speedup is, and not how the noise fell.
const step = 0.05

// Probed returns what a probe answers. Its figures are rounded, intervals outwards, and it never
// passes: what has nothing wrong is deferred with the reason probe.
func Probed(v *gates.Verdict, e *gates.Evidence) *Result {
	r := Redacted(v, e)
	r.Intent = Probe
	for i := range r.Shapes {
		s := &r.Shapes[i]
		s.Baseline, s.Candidate, s.Roofline = TwoDigits(s.Baseline), TwoDigits(s.Candidate), TwoDigits(s.Roofline)
		if s.Speedup != nil {
			s.Speedup = inSteps(s.Speedup)
		}
	}
	for _, w := range r.sums() {
		w.Baseline, w.Candidate, w.Saved, w.Share, w.Step = TwoDigits(w.Baseline), TwoDigits(w.Candidate), nil, nil, nil
		w.Speedup = inSteps(w.Speedup)
	}
	slow := false
	for i := range r.Failures {
		f := &r.Failures[i]
		if f.Gate == gates.GatePerformance {
			f.FirstBad, slow = nil, true // its text has exact figures
		}
	}
	switch {
	case v.Outcome == gates.Pass:
		r.Summary = "Nothing is wrong on the public cases, and the times are estimates. A probe cannot pass."
		r.ToPass = []string{"submit the same files with the intent claim if the speedup meets the goal of every shape"}
	case slow && v.Reason == gates.ReasonInconclusive:
		r.Summary = "Nothing is wrong on the public cases. Too few rounds were measured to see whether the goal is reached. A probe cannot pass."
	case slow:
		r.Summary = "The times do not meet the policy. Their rounded figures are in the table."
	}
	if slow {
		r.ToPass = []string{"raise the speedup of the shapes whose status is fail or open to their goals, and probe again"}
	}
	if v.Outcome == gates.Pass || slow && v.Reason == gates.ReasonInconclusive {
		r.Outcome, r.Reason, r.Blocks = gates.Defer, ReasonProbe, true
	}
	return r
}

func inSteps(s *Speedup) *Speedup {
	return &Speedup{Low: steps(s.Low, math.Floor), Mid: *steps(&s.Mid, math.Round), High: steps(s.High, math.Ceil)}
}

func steps(x *float64, way func(float64) float64) *float64 {
	if x == nil {
		return nil
	}
	y := way(*x/step) * step
	y = math.Round(y*100) / 100 // the nearest two decimals
	return &y
}

// TwoDigits rounds a positive figure for a probe. Others are left out.
func TwoDigits(x *float64) *float64 {
	if x == nil || *x <= 0 || math.IsInf(*x, 0) {
		return nil
	}
	unit := math.Pow(10, math.Floor(math.Log10(*x))-1)
	y := math.Round(*x/unit) * unit
	if unit < 1 { // without the error of the last digits
		y = math.Round(y/unit) / math.Round(1/unit)
	}
	return &y
}
