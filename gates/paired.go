package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A PairedSpeed is the candidate's speed at one shape, as a multiple of the baseline's: 0.97 is 3 %
// slower.
type PairedSpeed struct {
	Shape string
	Dims  string
	Same  bool // equal machine code serves the shape on both sides: the speed is 1, and nothing was timed
	Speed float64
	// Lower and Upper bound the true speed. See PairedSpeeds for their error rates.
	Lower, Upper float64
	// Baseline and Candidate are the times of both sides, in microseconds.
	Baseline, Candidate float64
}

// PairedSpeeds compares both sides at every timed shape, over all rounds. It is for callers that ask a
// different question about the rounds than the policy asks. The figures are those of the performance
// gate: disturbed pairs are left out, every kind of input has the same weight, and the control of the
// run widens the bounds. The parameter below is the error rate of all upper bounds together, and above
// is the error rate of each single lower bound. The secret shape is left out, because its size differs
// from run to run, and so are launches with a warm cache. A shape with too few rounds is left out, too.
func PairedSpeeds(e *Evidence, below, above float64) []PairedSpeed {
	if e.Baseline == nil || e.Candidate == nil {
		return nil
	}
	var all []PairedSpeed
	timed := map[int]*stats.Distribution{} // by the index in all
	draws := newResamplePlan(fewResamples) // at such small error rates the t bound decides, and it needs few resamples
	for _, shape := range e.Shapes {
		p := PairedSpeed{Shape: shape.Name, Dims: shape.Dims}
		switch {
		case shape.Secret || shape.Context != "":
			continue
		case e.SameCode || slices.Contains(e.SameShapes, shape.Name):
			p.Same, p.Speed, p.Lower, p.Upper = true, 1, 1, 1
		default:
			s := pairedShape(e, shape, draws, below)
			if s == nil {
				continue
			}
			timed[len(all)] = s.ratio
			p.Speed, p.Baseline, p.Candidate = s.ratio.Estimate, s.samples.time(s.samples.baselineTimes), s.samples.time(s.samples.candidateTimes)
		}
		all = append(all, p)
	}
	for i, ratio := range timed {
		_, all[i].Upper = ratio.Bounds(below / float64(len(timed)))
		all[i].Lower, _ = ratio.Bounds(above)
	}
	return all
}

// pairedShape compares both sides at one shape. It is nil where there are too few rounds.
func pairedShape(e *Evidence, shape Shape, draws *stats.ResamplePlan, alpha float64) *shapeComparison {
	if e.Performance == nil {
		return nil
	}
	s := &shapeComparison{goalOf: goalOf{shape: shape}, samples: collect(e.Performance.Rounds, shape.Name, clean)}
	s.separate = e.Device.Kind == DeviceGPU && s.samples.fresh
	if e.Can().Clock == ClockProcess {
		s.useWall(draws, alpha)
	}
	s.control = draw(draws, s.samples.control, 0.5)
	if s.ratio = draw(draws, s.samples.ratios, 0.5); s.ratio == nil || s.ratio.Rounds < policy.MinRounds {
		return nil
	}
	s.ratio = s.ratio.With(s.runBias())
	return s
}
