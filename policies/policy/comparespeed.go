package policy

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// compare promises little. A verdict is reached at the first interim analysis that decides, and "too
// slow" is proven over all tests of a role together. With a higher confidence, different interims or
// one more test, an early "too slow" may stay open, and later rounds may pass. Less of any of these
// is looser; the direction of more is unknown.
func (g *PerformanceGate) compare(l *compare.List, path string, old *PerformanceGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
	l.Unknown(path+".baseline", old.Baseline, g.Baseline)
	target := compare.Tightens
	if old.Guard != nil { // a shape that becomes a target may have been guarded by different bounds
		target = compare.Changes
	}
	compareGoal(l, path+".target", old.Target, g.Target, target)
	compareGoal(l, path+".guard", old.Guard, g.Guard, compare.Tightens)
	fewer(l, path+".confidence", old.Confidence, g.Confidence)
	fewer(l, path+".rounds.min", old.Rounds.Min, g.Rounds.Min)
	fewer(l, path+".rounds.max", old.Rounds.Max, g.Rounds.Max)
	fewer(l, path+".pairs", old.Pairs, g.Pairs)
	l.Unknown(path+".interims", old.Interims, g.Interims)
	compare.Less(l, path+".control", old.Control, g.Control)
	compare.Less(l, path+".solo_shift", old.SoloShift, g.SoloShift)
	compareTails(l, path+".tails", old.Tails, g.Tails)
	compare.Less(l, path+".budget", old.Budget, g.Budget)
	compareSecretShape(l, path+".secret_shape", old, g)
	compare.Asked(l, path+".roofline", old.Roofline == nil || *old.Roofline, g.Roofline == nil || *g.Roofline)
	compareExplain(l, path+".explain", old.Explain, g.Explain)
}

// compareSecretShape compares whether a secret shape is timed. Dropping it loosens the policy.
// Adding it is one more test under the guard.
func compareSecretShape(l *compare.List, path string, old, new *PerformanceGate) {
	was, is := old.SecretShape == nil || *old.SecretShape, new.SecretShape == nil || *new.SecretShape
	if was {
		compare.Asked(l, path, was, is)
		return
	}
	l.Unknown(path, was, is)
}

// fewer compares a figure. Less of it is looser; the direction of more is unknown.
func fewer[T quantity.Count | quantity.Percent](l *compare.List, path string, old, new T) {
	if new < old {
		compare.More(l, path, old, new)
		return
	}
	l.Unknown(path, old, new)
}

func compareGoal(l *compare.List, path string, old, new *Goal, comes compare.Direction) {
	if !compare.Both(l, path, old, new, comes) {
		return
	}
	compareShapes(l, path+".shapes", old.Shapes, new.Shapes, compare.Changes)
	l.Unknown(path+".inputs", cmp.Or(old.Inputs, InputsRandom), cmp.Or(new.Inputs, InputsRandom))
	compareContexts(l, path+".context", old.Context, new.Context)
	// A new bound is one more test.
	compareBound(l, path+".speedup", old.Speedup, new.Speedup, compare.Changes)
	compareBound(l, path+".latency_reduction", old.LatencyReduction, new.LatencyReduction, compare.Changes)
	compareBound(l, path+".p50", old.P50, new.P50, compare.Changes)
	compareBound(l, path+".p90", old.P90, new.P90, compare.Changes)
	compareBound(l, path+".weighted", old.Weighted, new.Weighted, compare.Changes)
	// It is judged after the interim analyses and can only defer.
	compareBound(l, path+".below_best", old.BelowBest, new.BelowBest, compare.Tightens)
}

// compareContexts compares how launches begin. Asking for one more is one more test, as a new bound is.
func compareContexts(l *compare.List, path string, old, new Contexts) {
	within := func(a, b Contexts) bool {
		return !slices.ContainsFunc(contexts, func(c Context) bool { return a.Has(c) && !b.Has(c) })
	}
	less := within(new, old)
	l.Way(path, old.String(), new.String(), less && within(old, new), less)
}

func compareTails(l *compare.List, path string, old, new *Tails) {
	if old, new = old.given(), new.given(); compare.Both(l, path, old, new, compare.Tightens) {
		compare.Limit(l, path+".mean", old.Mean, new.Mean, compare.Changes)
		compare.Limit(l, path+".p90", old.P90, new.P90, compare.Changes)
	}
}
