package policies

import (
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// comparePerformance promises little. A verdict falls at the first look that decides, and
// "too slow" is proven over all tests of a role together: with a higher confidence, other
// looks, or one test more, an early "too slow" may be left open, and later rounds may
// pass. Less of any of these is milder; of more nobody can say.
func comparePerformance(l *compare.List, path string, old, new *PerformanceGate) {
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareDeadline(l, path, old.Deadline, new.Deadline)
	l.Unknown(path+".baseline", old.Baseline, new.Baseline)
	compareTarget(l, path+".target", old, new)
	if wholeGoal(l, path+".guard", old.Guard, new.Guard, compare.Tightens) {
		compareGoal(l, path+".guard", old.Guard, new.Guard)
	}
	fewer(l, path+".confidence", old.Confidence, new.Confidence)
	fewer(l, path+".rounds.min", old.Rounds.Min, new.Rounds.Min)
	fewer(l, path+".rounds.max", old.Rounds.Max, new.Rounds.Max)
	fewer(l, path+".pairs", old.Pairs, new.Pairs)
	l.Unknown(path+".looks", old.Looks, new.Looks)
	compare.Less(l, path+".control", old.Control, new.Control)
	compare.Less(l, path+".solo_shift", old.SoloShift, new.SoloShift)
	compareTails(l, path+".tails", old.Tails, new.Tails)
	compare.Less(l, path+".budget", old.Budget, new.Budget)
	compare.Asked(l, path+".roofline", old.Roofline == nil || *old.Roofline, new.Roofline == nil || *new.Roofline)
}

// fewer notes a figure of which less is milder, and more unknown.
func fewer[T quantity.Count | quantity.Percent](l *compare.List, path string, old, new T) {
	if new < old {
		compare.More(l, path, old, new)
		return
	}
	l.Unknown(path, old, new)
}

// compareTarget minds that a shape which is no target any more, or becomes one, may be
// guarded by other bounds.
func compareTarget(l *compare.List, path string, old, new *PerformanceGate) {
	comes := compare.Tightens
	if old.Guard != nil {
		comes = compare.Changes
	}
	if wholeGoal(l, path, old.Target, new.Target, comes) {
		compareGoal(l, path, old.Target, new.Target)
	}
}

// wholeGoal tells whether there are two goals to compare, and notes one that came or went.
func wholeGoal(l *compare.List, path string, old, new *Goal, comes compare.Direction) bool {
	switch {
	case old == nil && new == nil:
	case old == nil:
		l.Add(path, compare.None, new.String(), comes)
	case new == nil:
		l.Add(path, old.String(), compare.None, compare.Loosens)
	default:
		return true
	}
	return false
}

func compareGoal(l *compare.List, path string, old, new *Goal) {
	compareShapes(l, path+".shapes", old.Shapes, new.Shapes, compare.Changes)
	compareTest(l, path+".speedup", old.Speedup, new.Speedup)
	compareTest(l, path+".latency_reduction", old.LatencyReduction, new.LatencyReduction)
	compareTest(l, path+".p50", old.P50, new.P50)
	compareTest(l, path+".p90", old.P90, new.P90)
}

// compareTest is of a bound that is one test more where there was none.
func compareTest[T quantity.Percent | quantity.Micros](l *compare.List, path string, old, new *quantity.Bound[T]) {
	if old == nil && new != nil {
		l.Add(path, compare.None, new.String(), compare.Changes)
		return
	}
	compareBound(l, path, old, new)
}

func compareTails(l *compare.List, path string, old, new *Tails) {
	none := func(t *Tails) bool { return t == nil || t.Mean == nil && t.P90 == nil }
	switch {
	case none(old) && none(new):
	case none(old):
		l.Add(path, compare.None, new.asked(), compare.Tightens)
	case none(new):
		l.Add(path, old.asked(), compare.None, compare.Loosens)
	default:
		compareTail(l, path+".mean", old.Mean, new.Mean)
		compareTail(l, path+".p90", old.P90, new.P90)
	}
}

func compareTail(l *compare.List, path string, old, new *quantity.Percent) {
	if old == nil && new != nil {
		l.Add(path, compare.None, new.String(), compare.Changes)
		return
	}
	compare.Limit(l, path, old, new)
}
