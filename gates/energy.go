package gates

import (
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// An EnergyRow is the energy of a launch on one shape, by one sensor.
type EnergyRow struct {
	Shape     string   `json:"shape"`
	Source    string   `json:"source"`
	Baseline  float64  `json:"baseline"`  // joules of a launch
	Candidate float64  `json:"candidate"` // joules of a launch
	Change    float64  `json:"change"`    // candidate/baseline − 1
	Lower     *float64 `json:"lower,omitempty"`
	Upper     *float64 `json:"upper,omitempty"`
	Limit     string   `json:"limit,omitempty"` // where the row decides
	Status    Status   `json:"status"`
}

// energy compares the energy of a launch of both sides. The limit must hold for the whole interval, on every shape.
func (j *judgement) energy() GateResult {
	gate, e := j.rule.Gates.Energy, j.evidence.Energy
	switch {
	case j.evidence.Baseline == nil:
		return GateResult{Status: NotRun, Found: facts.NoBaseline{}}
	case e == nil:
		return GateResult{Status: Missing, Found: facts.NoEnergy{}}
	case e.Skipped != "":
		return GateResult{Status: Missing, Found: facts.NoEnergy{Why: e.Skipped}}
	}
	if r, bad := j.energyFailure(e); bad {
		return r
	}
	var all []facts.EnergyChange
	worst := Passed
	for _, shape := range gate.Shapes.Pick(j.evidence.shapeNames()) {
		if slices.Contains(j.evidence.SameShapes, shape) {
			continue
		}
		change, status := j.energyOf(shape, gate)
		if status == Missing {
			return GateResult{Status: Missing, Found: facts.NoEnergy{Shape: shape}}
		}
		if all = append(all, change); status == Failed || worst == Passed {
			worst = status
		}
	}
	if len(all) == 0 {
		return GateResult{Status: Passed, Found: facts.NothingToMeasure{}}
	}
	found := facts.EnergyChanges{Shapes: all, Limit: float64(gate.Increase.Value), Asked: gate.Increase.String()}
	r := GateResult{Status: worst, Found: found}
	switch worst {
	case Failed:
		r.Reason, r.Steps = ReasonEnergy, []facts.Advice{facts.Stated{Fact: found}}
	case Open:
		r.Reason, r.Steps = ReasonInconclusive, []facts.Advice{facts.MeasureUndisturbed{}}
	}
	return r
}

// energyFailure finds launches that failed or gave wrong output during a segment.
func (j *judgement) energyFailure(e *Energy) (GateResult, bool) {
	if e.Failure != nil {
		return GateResult{Status: Failed, Reason: ReasonCorrectness, Found: facts.FailedInSegment{Detail: e.Failure.Detail}, Steps: []facts.Advice{facts.ComputeWhole{}}}, true
	}
	for _, s := range e.Series {
		if r, bad := j.timedFailure([]Round{{Series: []Series{s.Series}}}); bad {
			r.Found = facts.WrongInSegment{Shape: j.evidence.labelOf(s.Shape), Problem: r.Found}
			return r, true
		}
	}
	return GateResult{}, false
}

// energyOf is the change on one shape, by both sensors. The counter decides where it was read.
func (j *judgement) energyOf(shape string, gate *policy.EnergyGate) (facts.EnergyChange, Status) {
	found := facts.EnergyChange{Shape: shape}
	status := Missing
	for _, source := range []string{EnergyByCounter, EnergyByPower} {
		m := energyFrom(j.evidence.Energy, shape, source)
		ratio := draw(j.resamples.many, m.ratios, 0.5)
		if ratio == nil || ratio.Rounds < policy.MinRounds {
			continue
		}
		lower, upper := ratio.Bounds(codeAlpha(1-float64(gate.Confidence), j.codeNumber()) * lookShare(m.looks))
		lower, upper = lower-1, upper-1
		row := EnergyRow{
			Shape: shape, Source: source, Baseline: round(m.baseline), Candidate: round(m.candidate), Change: round(ratio.Estimate - 1),
			Lower: new(round(lower)), Upper: new(round(upper)), Status: Informs,
		}
		reading := facts.EnergyReading{Source: source, Baseline: m.baseline, Candidate: m.candidate, Change: ratio.Estimate - 1, Lower: lower, Upper: upper}
		if status != Missing {
			found.Other = &reading
			found.Disagree = disagree(found.EnergyReading, reading)
		} else {
			found.EnergyReading = reading
			switch {
			case gate.Increase.Holds(upper):
				status = Passed
			case gate.Increase.Holds(lower):
				status = Open
			default:
				status = Failed
			}
			row.Limit, row.Status = gate.Increase.String(), status
		}
		j.energies = append(j.energies, row)
	}
	return found, status
}

// Two sensors disagree if the changes that they show differ by more than their noise and by a percentage point, or if their joules
// are further apart than sensors are allowed to be wrong.
const (
	apartChange = 0.01
	apartJoules = 0.1
)

func disagree(a, b facts.EnergyReading) bool {
	changes := (b.Lower > a.Upper || b.Upper < a.Lower) && math.Abs(a.Change-b.Change) > apartChange
	return changes || math.Abs(math.Log(a.Baseline/b.Baseline)) > apartJoules || math.Abs(math.Log(a.Candidate/b.Candidate)) > apartJoules
}

func (j *judgement) codeNumber() int {
	if p := j.evidence.Performance; p != nil {
		return p.CodeNumber()
	}
	return 1
}

// lookShare is the part of the error rate that the n-th look at the energy of one machine code may spend: measuring again adds to
// the samples, and is no new chance. The parts sum to 1.
func lookShare(n int) float64 {
	if n <= 1 {
		return 0.75
	}
	return math.Ldexp(0.25, 1-n)
}

// energySamples is the energy of a launch by one sensor.
type energySamples struct {
	baseline, candidate float64      // joules, the median over the segments
	ratios              stats.Sample // candidate/baseline: each pair of segments is a cluster
	looks               int          // how often the shape was measured
}

// energyFrom reads the segments of a shape. A pair without a figure of one of its sides is left out.
func energyFrom(e *Energy, shape, source string) (m energySamples) {
	var baseline, candidate []float64
	for _, s := range e.Series {
		if s.Shape != shape || s.Batch < 1 {
			continue
		}
		m.looks++
		step := stepOf(slices.Concat(s.Segments, s.Rests))
		rest, ok := restOf(s.Rests, source, step)
		if !ok {
			continue
		}
		at := 0
		for _, pair := range strings.Fields(s.Order) {
			sides := map[rune]float64{}
			for _, side := range pair {
				if at >= len(s.Segments) {
					break
				}
				if joules, ok := s.Segments[at].perPass(source, step); ok && joules > rest {
					sides[side] = (joules - rest) / float64(s.Batch)
				}
				at++
			}
			b, c := sides[SideBaseline], sides[SideCandidate]
			if b > 0 && c > 0 {
				baseline, candidate = append(baseline, b), append(candidate, c)
				m.ratios.Rounds = append(m.ratios.Rounds, []float64{c / b})
			}
		}
	}
	if len(baseline) > 0 {
		m.baseline, m.candidate = stats.Describe(baseline).P50, stats.Describe(candidate).P50
	}
	return m
}

// restOf is the energy of what a pass does besides its launches.
func restOf(rests []EnergySegment, source string, step float64) (joules float64, ok bool) {
	var all []float64
	for _, r := range rests {
		if joules, ok := r.perPass(source, step); ok {
			all = append(all, joules)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return stats.Describe(all).P50, true
}

// settlingTime is how many seconds of a segment pass before its readings count.
const settlingTime = 0.02

// perPass is the energy of a pass: the mean power between the first and the last reading that counts, over the time of a pass.
func (s EnergySegment) perPass(source string, step float64) (joules float64, ok bool) {
	if s.Passes < 1 || !(s.Seconds > 0) {
		return 0, false
	}
	var watts float64
	if source == EnergyByPower {
		watts, ok = s.Power.mean(min(settlingShare*s.Seconds, powerDelay), s.Seconds)
	} else {
		watts, ok = s.Counter.slope(step)
	}
	joules = watts * s.Seconds / float64(s.Passes)
	return joules, ok && joules > 0 && !math.IsInf(joules, 1)
}

// The power draw shows what happened a tenth of a second ago.
const (
	settlingShare = 0.5
	powerDelay    = 0.12
)

// counted is the first and the last change of a counter that count; the value at the beginning is no change.
func (c *SensorChanges) counted() (first, last int) {
	if c == nil {
		return 0, 0
	}
	for i := range c.At {
		if i == 0 || c.At[i] < settlingTime {
			continue
		}
		if first == 0 {
			first = i
		}
		last = i
	}
	return first, last
}

// stepOf is the time between two changes of a counter that advances at regular times; 0 where it does not. The judge polls the
// counter, so that the moment of a single change is known to a millisecond or two only. The mean over all of them is exact.
func stepOf(all []EnergySegment) float64 {
	seconds, steps := 0.0, 0
	for _, s := range all {
		if first, last := s.Counter.counted(); last > first {
			seconds, steps = seconds+s.Counter.At[last]-s.Counter.At[first], steps+last-first
		}
	}
	if steps == 0 {
		return 0
	}
	step := seconds / float64(steps)
	for _, s := range all {
		if first, last := s.Counter.counted(); last > first && math.Abs(s.Counter.At[last]-s.Counter.At[first]-float64(last-first)*step) > 0.1*step {
			return 0
		}
	}
	return step
}

// slope is how fast a counter grows between two of its changes, by the time of a step where it has one.
func (c *SensorChanges) slope(step float64) (float64, bool) {
	first, last := c.counted()
	if last == first {
		return 0, false
	}
	seconds := c.At[last] - c.At[first]
	if step > 0 {
		seconds = float64(last-first) * step
	}
	return (c.Values[last] - c.Values[first]) / seconds, true
}

// mean is the mean over time of a sensor that keeps its value until the next change.
func (c *SensorChanges) mean(from, to float64) (float64, bool) {
	if c == nil || len(c.At) == 0 || c.At[0] > from || !(to > from) {
		return 0, false
	}
	sum := 0.0
	for i, at := range c.At {
		end := to
		if i+1 < len(c.At) {
			end = min(to, c.At[i+1])
		}
		if at = max(at, from); end > at {
			sum += c.Values[i] * (end - at)
		}
	}
	return sum / (to - from), true
}
