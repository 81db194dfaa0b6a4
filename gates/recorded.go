package gates

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A recording is a fixed input, which a kernel could know. Three rules follow. Launches are timed on a recording with noise
// only, different in each launch. The noise must move the answer: every run compares the answer to the recording itself with
// the right answer to a noisy one, and that must be wrong by the policy's bounds, or the recording proves nothing. And a goal
// counts random inputs, unless the policy says that it is about recordings.

// unprotected is the first recording whose answer could be remembered, or nil.
func (c *Correctness) unprotected(gate *policy.CorrectnessGate) facts.Fact {
	for _, k := range c.Cases {
		if k.Replayed != nil && len((Case{Errors: k.Replayed}).misses(gate)) == 0 {
			return facts.ReplayPasses{Input: k.Input}
		}
	}
	return nil
}

// missingRecorded is what a recording lacks that launches are timed on: a case that shows that its answer cannot be
// remembered.
func missingRecorded(gate *policy.CorrectnessGate, e *Evidence, shape string) []facts.Fact {
	var missing []facts.Fact
	for _, kind := range distribution.TimedOn(gate.Distributions, e.Recorded, shape) {
		shown := func(k Case) bool {
			return k.Shape == shape && k.Distribution == string(kind) && (k.Replayed != nil || k.Failure != nil)
		}
		if kind.FromRecording() && !slices.ContainsFunc(e.Correctness.Cases, shown) {
			missing = append(missing, facts.ReplayNotTried{Shape: shape, Recording: string(kind)})
		}
	}
	return missing
}

// on is the part of a series that was measured on some kinds of input. Blocks take the kinds in rotation, and so do those
// that are left.
func (s Series) on(kinds []string) Series {
	n := len(s.Distributions)
	keeps := func(i int) bool { return slices.Contains(kinds, s.Distributions[i%n]) }
	some := func(list []float64) []float64 {
		var kept []float64
		for i, x := range list {
			if keeps(i) {
				kept = append(kept, x)
			}
		}
		return kept
	}
	part := s
	part.Nanos, part.Wall, part.Disturbed = nil, nil, nil
	var order []string
	at := 0
	for i, block := range strings.Fields(s.Order) {
		from, to := at, min(at+len(block), len(s.Nanos))
		at = to
		if !keeps(i) {
			continue
		}
		for _, d := range s.Disturbed {
			if d >= from && d < to {
				part.Disturbed = append(part.Disturbed, d-from+len(part.Nanos))
			}
		}
		order = append(order, block)
		part.Nanos = append(part.Nanos, s.Nanos[from:to]...)
		if s.Wall != nil {
			part.Wall = append(part.Wall, s.Wall[from:to]...)
		}
	}
	part.Order = strings.Join(order, " ")
	part.Distributions = slices.DeleteFunc(slices.Clone(s.Distributions), func(kind string) bool { return !slices.Contains(kinds, kind) })
	part.Solo, part.Stateful = some(s.Solo), some(s.Stateful)
	if s.Single != nil {
		single := *s.Single
		for _, list := range []*[]float64{&single.Baseline, &single.Candidate, &single.FirstBaseline, &single.FirstCandidate, &single.MeanBaseline, &single.MeanCandidate} {
			*list = some(*list)
		}
		part.Single = &single
	}
	if s.States != nil {
		part.States = &States{ClockMHz: some(s.States.ClockMHz), Watts: some(s.States.Watts), Celsius: some(s.States.Celsius)}
	}
	return part
}

// splitKinds divides the rounds of a shape into those parts that a goal is about, and the others. Without recordings there
// are no others. A nil goal is about random inputs.
func splitKinds(rounds []Round, shape string, goal *policy.Goal) (counted, others []Round) {
	recorded := func(s Series) bool {
		return s.Shape == shape && slices.ContainsFunc(s.Distributions, func(kind string) bool { return distribution.Kind(kind).FromRecording() })
	}
	if !slices.ContainsFunc(rounds, func(r Round) bool { return slices.ContainsFunc(r.Series, recorded) }) {
		return rounds, nil
	}
	if goal == nil {
		goal = &policy.Goal{}
	}
	var of, rest []Round
	for _, r := range rounds {
		a, b := r, r
		a.Series, b.Series = nil, nil
		for _, s := range r.Series {
			kinds := goal.Counts(s.Distributions)
			switch {
			case s.Shape != shape:
			case len(kinds) == 0 || len(kinds) == len(s.Distributions):
				a.Series = append(a.Series, s)
			default:
				a.Series = append(a.Series, s.on(kinds))
				b.Series = append(b.Series, s.on(slices.DeleteFunc(slices.Clone(s.Distributions), func(kind string) bool { return slices.Contains(kinds, kind) })))
			}
		}
		of = append(of, a)
		if len(b.Series) > 0 {
			rest = append(rest, b)
		}
	}
	return of, rest
}
