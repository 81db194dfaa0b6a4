package gates

import (
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// A finding exists already where the baseline has it on the same input, at least as badly. An
// existing finding is reported and decides nothing, unless the policy says so. A change need not
// wait until an earlier mistake is fixed, but must not hide a new one behind it.

const (
	// figureNoise is how much larger an error may be than the baseline's and still count as the same.
	// Code that adds in a different order moves the averages over an output by a few per cent at most.
	figureNoise = 1.1
	// peakNoise is the same for the largest error of a single element where no bound on it is missed.
	// It varies more than an average does, but an element that is plainly wrong is larger than one with
	// a large rounding error by orders of magnitude.
	peakNoise = 2
)

// A miss is one thing that is wrong with a case.
type miss struct {
	fact    facts.Fact
	existed bool // the baseline misses the same on the same input, at least as badly
}

// misses is everything that is wrong with the case under a gate, the most telling first.
// Without a gate no element may be beyond the tolerance.
func (k Case) misses(gate *policy.CorrectnessGate) []miss {
	if gate == nil {
		gate = &policy.CorrectnessGate{Bad: &quantity.Bound[quantity.Percent]{Op: quantity.AtMost}}
	}
	if k.Failure != nil {
		return []miss{{facts.Quote(k.Failure.Detail), sameFailure(k.BaselineFailure, *k.Failure)}}
	}
	var all []miss
	if len(k.InputsChanged) > 0 {
		f := InputsWritten(k.InputsChanged)
		// The detail names the arguments: to write to a different one is a new mistake.
		all = append(all, miss{facts.Quote(f.Detail), sameFailure(k.BaselineFailure, f) && k.BaselineFailure.Detail == f.Detail})
	}
	if k.OutOfBounds {
		f := WrittenOutside()
		all = append(all, miss{facts.Quote(f.Detail), sameFailure(k.BaselineFailure, f)})
	}
	if k.Errors == nil {
		return append(all, miss{fact: facts.NothingCompared{}})
	}
	all = append(all, k.Errors.countMisses(k.Baseline)...)
	all = append(all, k.Errors.eachBoundMisses(gate.Bounds(), k.Baseline)...)
	if gate.EndToEnd != nil && k.EndToEnd != nil {
		for _, m := range k.EndToEnd.eachBoundMisses(*gate.EndToEnd, k.BaselineEndToEnd) {
			all = append(all, miss{facts.EndToEnd{Miss: m.fact}, m.existed})
		}
	}
	if gate.Determinism && k.Deterministic != nil && !*k.Deterministic {
		all = append(all, miss{facts.NotDeterministic{}, k.BaselineDeterministic != nil && !*k.BaselineDeterministic})
	}
	if gate.BitParity && k.BitParity != nil && !*k.BitParity {
		all = append(all, miss{fact: facts.NotBitIdentical{}})
	}
	return all
}

// existed reports whether the baseline has all of the misses, and there are any.
func existed(all []miss) bool {
	for _, m := range all {
		if !m.existed {
			return false
		}
	}
	return len(all) > 0
}

// InputsWritten is the failure of a kernel that writes to arguments that it may only read.
func InputsWritten(names []string) Failure {
	return Failure{Kind: FailureInputs, Detail: "the kernel wrote to its input " + strings.Join(names, ", ")}
}

// WrittenOutside is the failure of a kernel that writes to memory that is none of its
// arguments'.
func WrittenOutside() Failure {
	return Failure{Kind: FailureOutOfBounds, Detail: "the kernel wrote outside its arguments"}
}

// sameFailure reports whether the baseline fails in the same way. A kernel that keeps state or makes
// a call that the sandbox refuses is suspicious whatever the baseline does.
func sameFailure(was *Failure, is Failure) bool {
	switch is.Kind {
	case FailureCrash, FailureExit, FailureTimeout, FailureOutOfMemory, FailureIllegalAddress, FailureLaunch, FailureInputs, FailureOutOfBounds:
		return was != nil && was.Kind == is.Kind
	}
	return false
}

// FailsAsBefore reports whether the candidate failed the case without an output, in the same
// way as the baseline.
func (k Case) FailsAsBefore() bool {
	return k.Failure != nil && sameFailure(k.BaselineFailure, *k.Failure)
}

// countMisses is the elements that no bound allows, each kind with whether the baseline has at least
// as many.
func (e Errors) countMisses(was *Errors) []miss {
	var all []miss
	count := func(n, before int, kind facts.ElementKind) {
		if n > 0 {
			all = append(all, miss{facts.ElementCount{Kind: kind, N: n, All: e.Elements}, e.comparable(was) && n <= before})
		}
	}
	before := orNoErrors(was)
	count(e.Unwritten, before.Unwritten, facts.Unwritten)
	count(e.NaN, before.NaN, facts.NaN)
	count(e.Inf, before.Inf, facts.Infinite)
	return all
}

// eachBoundMisses is the bounds that the errors miss, output by output where there are several: a share of bad elements over all of
// them would hide a small output that is wrong everywhere.
func (e Errors) eachBoundMisses(b policy.ErrorBounds, was *Errors) []miss {
	if len(e.Outputs) < 2 {
		return e.boundMisses(b, was)
	}
	var all []miss
	for _, o := range e.Outputs {
		for _, m := range o.boundMisses(b, was.output(o.Name)) {
			all = append(all, miss{facts.OfOutput{Output: o.Name, Miss: m.fact}, m.existed})
		}
	}
	return all
}

// output is the errors of one output, or nil.
func (e *Errors) output(name string) *Errors {
	if e == nil {
		return nil
	}
	for i := range e.Outputs {
		if e.Outputs[i].Name == name {
			return &e.Outputs[i].Errors
		}
	}
	return nil
}

// boundMisses is the bounds that the errors miss.
func (e Errors) boundMisses(b policy.ErrorBounds, was *Errors) []miss {
	var all []miss
	for _, f := range []struct {
		kind  facts.ErrorKind
		asked asked
		value func(Errors) float64
	}{
		{facts.NormError, bound(b.Norm), func(e Errors) float64 { return e.Norm }},
		{facts.MaxError, bound(b.MaxAbs), func(e Errors) float64 { return e.MaxAbs }},
		{facts.MeanError, bound(b.MeanAbs), func(e Errors) float64 { return e.MeanAbs }},
	} {
		if f.asked == nil || f.asked.Holds(f.value(e)) {
			continue
		}
		existed := e.noWorse(was) && !f.asked.Holds(f.value(*was)) && f.value(e) <= figureNoise*f.value(*was)
		all = append(all, miss{facts.ErrorBound{Error: f.kind, Value: f.value(e), Asked: f.asked.String()}, existed})
	}
	if bad := func(e Errors) bool { return b.Bad != nil && !b.Bad.Holds(e.badShare()) }; bad(e) {
		same := e.noWorse(was)
		if e.wrongElements() == 0 { // they are NaN, infinite or unwritten, and the figures say nothing about those
			same = e.noMore(was)
		}
		all = append(all, miss{facts.BadElements{Bad: e.Bad, All: e.Elements, Share: e.badShare(), Asked: b.Bad.String()}, same && bad(*was)})
	}
	return all
}

// An asked is a bound on one figure.
type asked interface {
	Holds(float64) bool
	String() string
}

// bound is nil where there is none.
func bound[T quantity.Number | quantity.Percent](b *quantity.Bound[T]) asked {
	if b == nil {
		return nil
	}
	return b
}

func (e Errors) badShare() float64 { return float64(e.Bad) / float64(max(e.Elements, 1)) }

// wrongElements is how many elements are beyond the tolerance with a value that can be
// compared.
func (e Errors) wrongElements() int { return e.Bad - e.NaN - e.Inf - e.Unwritten }

func (e Errors) comparable(was *Errors) bool { return was != nil && was.Elements == e.Elements }

// noMore reports whether no kind of bad element is more frequent than in the baseline's output.
// Fewer of one kind do not make up for more of another kind.
func (e Errors) noMore(was *Errors) bool {
	return e.comparable(was) && e.Unwritten <= was.Unwritten && e.NaN <= was.NaN && e.Inf <= was.Inf && e.wrongElements() <= was.wrongElements()
}

// noWorse reports whether an output is no worse than the baseline's on the same input by any figure,
// with or without a bound: elements that are plainly wrong must not hide among as many with large
// rounding errors.
func (e Errors) noWorse(was *Errors) bool {
	return e.noMore(was) && e.Norm <= figureNoise*was.Norm && e.MeanAbs <= figureNoise*was.MeanAbs && e.MaxAbs <= peakNoise*was.MaxAbs
}

func orNoErrors(e *Errors) Errors {
	if e == nil {
		return Errors{}
	}
	return *e
}

// asBefore reports whether the baseline gets every timed output that misses a bound wrong as well,
// on the same input and as badly.
func (s Series) asBefore(gate *policy.CorrectnessGate) bool {
	rest := orNoErrors(s.Worst)
	for _, o := range s.Outputs {
		if all := (Case{Errors: &o.Candidate, Baseline: &o.Baseline}).misses(gate); len(all) > 0 && !existed(all) {
			return false
		}
		rest = rest.without(o.Candidate)
	}
	// An error that no listed output explains is in an output that is not listed.
	return len(s.Outputs) > 0 && len((Case{Errors: &rest}).misses(gate)) == 0
}

// without leaves out the figures that an output explains.
func (e Errors) without(o Errors) Errors {
	return Errors{
		Elements: e.Elements,
		MaxAbs:   unlessReached(e.MaxAbs, o.MaxAbs), MeanAbs: unlessReached(e.MeanAbs, o.MeanAbs), Norm: unlessReached(e.Norm, o.Norm),
		Bad: unlessReached(e.Bad, o.Bad), NaN: unlessReached(e.NaN, o.NaN), Inf: unlessReached(e.Inf, o.Inf), Unwritten: unlessReached(e.Unwritten, o.Unwritten),
	}
}

func unlessReached[T int | float64](worst, one T) T {
	if one >= worst {
		return 0
	}
	return worst
}
