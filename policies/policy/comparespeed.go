package policy

import (
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// comparePerformance promises little. A verdict is reached at the first look that decides, and "too
// slow" is proven over all tests of a role together. With a higher confidence, different looks or
// one more test, an early "too slow" may stay open, and later rounds may pass. Less of any of these
// is looser; the direction of more is unknown.
func comparePerformance(l *compare.List, path string, old, new *PerformanceGate) {
	if !compare.Both(l, path, old, new, compare.Tightens) {
		return
	}
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareDeadline(l, path, old.Deadline, new.Deadline)
	l.Unknown(path+".baseline", old.Baseline, new.Baseline)
	target := compare.Tightens
	if old.Guard != nil { // a shape that becomes a target may have been guarded by different bounds
		target = compare.Changes
	}
	compareGoal(l, path+".target", old.Target, new.Target, target)
	compareGoal(l, path+".guard", old.Guard, new.Guard, compare.Tightens)
	fewer(l, path+".confidence", old.Confidence, new.Confidence)
	fewer(l, path+".rounds.min", old.Rounds.Min, new.Rounds.Min)
	fewer(l, path+".rounds.max", old.Rounds.Max, new.Rounds.Max)
	fewer(l, path+".pairs", old.Pairs, new.Pairs)
	l.Unknown(path+".looks", old.Looks, new.Looks)
	compare.Less(l, path+".control", old.Control, new.Control)
	compare.Less(l, path+".solo_shift", old.SoloShift, new.SoloShift)
	compareTails(l, path+".tails", old.Tails, new.Tails)
	compare.Less(l, path+".budget", old.Budget, new.Budget)
	compareSecretShape(l, path+".secret_shape", old, new)
	compare.Asked(l, path+".roofline", old.Roofline == nil || *old.Roofline, new.Roofline == nil || *new.Roofline)
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
	// A new bound is one more test.
	compareBound(l, path+".speedup", old.Speedup, new.Speedup, compare.Changes)
	compareBound(l, path+".latency_reduction", old.LatencyReduction, new.LatencyReduction, compare.Changes)
	compareBound(l, path+".p50", old.P50, new.P50, compare.Changes)
	compareBound(l, path+".p90", old.P90, new.P90, compare.Changes)
	// It is judged after the looks and can only defer.
	compareBound(l, path+".below_best", old.BelowBest, new.BelowBest, compare.Tightens)
}

func compareTails(l *compare.List, path string, old, new *Tails) {
	if old, new = old.given(), new.given(); compare.Both(l, path, old, new, compare.Tightens) {
		compare.Limit(l, path+".mean", old.Mean, new.Mean, compare.Changes)
		compare.Limit(l, path+".p90", old.P90, new.P90, compare.Changes)
	}
}
