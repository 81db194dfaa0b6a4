package stats

import "math"

// A RunBias is a difference that stays the same in every round of a run, and is zero
// on average over runs: Student's t with so many degrees of freedom, times the
// scale, on the log scale. Most is how far the figures may be off beyond that, in
// either direction: it is no noise, so that no number of rounds and no luck helps.
type RunBias struct {
	Scale float64
	Dof   float64
	Most  float64
}

// Seen updates what is expected of an offset by one that was seen: the estimate of a
// run in which the truth was 1, with the error that its own noise leaves. The
// expectation counts for its degrees of freedom, and what was seen for one more.
// The part of what was seen that noise alone explains is taken off.
func (o RunBias) Seen(d *Distribution) RunBias {
	seen := math.Log(d.Estimate)
	excess := max(0, seen*seen-d.StdErr*d.StdErr)
	return RunBias{Scale: math.Sqrt((o.Dof*o.Scale*o.Scale + excess) / (o.Dof + 1)), Dof: o.Dof + 1, Most: o.Most}
}

// With is the distribution of a truth from which the whole run may be off. Its error
// has two parts: what differs between rounds, and the offset. The variances add, the
// resamples are stretched to the sum, and the degrees of freedom are those of the
// sum after Welch and Satterthwaite, but never more than the rounds have.
func (d *Distribution) With(o RunBias) *Distribution {
	if !(o.Scale > 0) || !(o.Dof > 0) || d.offset.Scale > 0 {
		return d
	}
	wide := *d
	wide.offset = o
	wide.StdErr, wide.dof = o.widen(d.StdErr, d.Rounds)
	if d.StdErr > 0 {
		stretch := wide.StdErr / d.StdErr
		wide.offsets = make([]float64, len(d.offsets))
		for i, x := range d.offsets {
			wide.offsets[i] = x * stretch
		}
	}
	return &wide
}

// widen adds the offset to the standard error of so many rounds.
func (o RunBias) widen(stdErr float64, rounds int) (wide, dof float64) {
	between := float64(rounds - 1)
	if !(o.Scale > 0) {
		return stdErr, between
	}
	a, b := stdErr*stdErr, o.Scale*o.Scale
	return math.Sqrt(a + b), min(between, (a+b)*(a+b)/(a*a/between+b*b/o.Dof))
}
