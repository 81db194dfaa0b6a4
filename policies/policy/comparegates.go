package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

func compareGates(path string, old, new Gates) compare.List {
	var l compare.List
	compareEnforcement(&l, path+".build", old.Build.Enforcement, new.Build.Enforcement)
	compareDeadline(&l, path+".build", old.Build.Deadline, new.Build.Deadline)
	comparePTXAS(&l, path+".ptxas", old.PTXAS, new.PTXAS)
	compareCorrectness(&l, path+".correctness", old.Correctness, new.Correctness)
	compareSanitize(&l, path+".sanitize", old.Sanitize, new.Sanitize)
	comparePerformance(&l, path+".performance", old.Performance, new.Performance)
	compareProfile(&l, path+".profile", old.Profile, new.Profile)
	return l
}

func compareEnforcement(l *compare.List, path string, old, new Enforcement) {
	compare.Asked(l, path+".required", old.Decides(), new.Decides())
}

// compareDeadline treats more time as looser: work that did not end in time may do so now.
func compareDeadline(l *compare.List, path string, old, new Deadline) {
	switch {
	case old.Timeout == new.Timeout:
	case old.Timeout == 0 || new.Timeout == 0:
		l.Unknown(path+".timeout", old.Timeout, new.Timeout)
	default:
		compare.Less(l, path+".timeout", old.Timeout, new.Timeout)
	}
}

func comparePTXAS(l *compare.List, path string, old, new *PTXASGate) {
	if !compare.Both(l, path, old, new, compare.Tightens) {
		return
	}
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareBudget(l, path+".registers", old.Registers, new.Registers)
	budgets := maps.Collect(old.sizes())
	for field, b := range new.sizes() {
		compareBudget(l, path+"."+field, budgets[field], b)
	}
	compareBound(l, path+".blocks_per_sm", old.BlocksPerSM, new.BlocksPerSM, compare.Tightens)
}

func compareBudget[T quantity.Count | quantity.Bytes](l *compare.List, path string, old, new *Budget[T]) {
	was, is := orNone(old), orNone(new)
	compare.Limit(l, path+".max", was.Max, is.Max, compare.Tightens)
	compareBound(l, path+".increase", was.Increase, is.Increase, compare.Tightens)
}

// compareCorrectness does not treat more inputs as stricter. The kernel is timed on the inputs on
// which it is compared, and every kind of input counts the same in its speedup. One more kind can
// make a kernel pass that is fast on nothing else.
func compareCorrectness(l *compare.List, path string, old, new *CorrectnessGate) {
	if !compare.Both(l, path, old, new, compare.Changes) {
		return
	}
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareDeadline(l, path, old.Deadline, new.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, new.Shapes, compare.Changes)
	compare.Fewer(l, path+".seeds", old.Seeds, new.Seeds)
	compare.Fewer(l, path+".distributions", old.Distributions, new.Distributions)
	compare.More(l, path+".secret_cases", old.SecretCases, new.SecretCases)
	compareErrors(l, path, old.Bounds(), new.Bounds())
	compare.Asked(l, path+".bit_parity", old.BitParity, new.BitParity)
	compare.Asked(l, path+".determinism", old.Determinism, new.Determinism)
	compareWord(l, path+".existing", existings, old.Existing, new.Existing)
	compareErrors(l, path+".end_to_end", orNone(old.EndToEnd), orNone(new.EndToEnd))
}

// orNone returns the bounds, or bounds that ask for nothing if there are none.
func orNone[T any](bounds *T) (asked T) {
	if bounds != nil {
		asked = *bounds
	}
	return asked
}

func compareErrors(l *compare.List, path string, old, new ErrorBounds) {
	compareBound(l, path+".max_abs_error", old.MaxAbs, new.MaxAbs, compare.Tightens)
	compareBound(l, path+".mean_abs_error", old.MeanAbs, new.MeanAbs, compare.Tightens)
	compareBound(l, path+".bad_elements", old.Bad, new.Bad, compare.Tightens)
	compareBound(l, path+".norm_error", old.Norm, new.Norm, compare.Tightens)
}

// compareShapes compares shapes; wider is the direction of more shapes.
func compareShapes(l *compare.List, path string, old, new Shapes, wider compare.Direction) {
	within := func(a, b Shapes) bool {
		if a.First || b.First { // this package does not know which shape is the first
			return b.All && !b.First || a.First && b.First
		}
		return b.All || !a.All && !slices.ContainsFunc(a.Names, func(name string) bool { return !slices.Contains(b.Names, name) })
	}
	more, less := within(old, new), within(new, old)
	l.Way(path, old.String(), new.String(), more && (less || wider == compare.Tightens), less)
}

func compareSanitize(l *compare.List, path string, old, new *SanitizeGate) {
	if !compare.Both(l, path, old, new, compare.Tightens) {
		return
	}
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareDeadline(l, path, old.Deadline, new.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, new.Shapes, compare.Tightens)
	compare.Set(l, path+".distributions", old.Distributions, new.Distributions)
	compare.More(l, path+".secret_cases", old.SecretCases, new.SecretCases)
	compare.Set(l, path+".tools", old.Tools, new.Tools)
	compareWord(l, path+".missing_tool", []MissingTool{MissingInforms, MissingDefers}, old.MissingTool, new.MissingTool)
	compareWord(l, path+".existing", existings, old.Existing, new.Existing)
}

// compareProfile pairs conditions by their metric. An additional condition in any is one more way
// to meet it.
func compareProfile(l *compare.List, path string, old, new *ProfileGate) {
	if !compare.Both(l, path, old, new, compare.Tightens) {
		return
	}
	compareEnforcement(l, path, old.Enforcement, new.Enforcement)
	compareDeadline(l, path, old.Deadline, new.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, new.Shapes, compare.Tightens)
	was, wasOnce := byMetric(old.All)
	is, isOnce := byMetric(new.All)
	if !wasOnce || !isOnce {
		l.Unknown(path+".all", old.All, new.All)
	} else {
		for _, m := range metrics(old.All, new.All) {
			compareBound(l, path+".all["+m+"]", was[m], is[m], compare.Tightens)
		}
	}
	within := func(a, b []MetricCondition) bool {
		return len(b) == 0 || len(a) > 0 && !slices.ContainsFunc(a, func(c MetricCondition) bool { return !slices.Contains(b, c) })
	}
	either := func(list []MetricCondition) string { return cmp.Or(conditions(list, " or "), compare.None) }
	l.Way(path+".any", either(old.Any), either(new.Any), within(new.Any, old.Any), within(old.Any, new.Any))
}

func byMetric(list []MetricCondition) (bounds map[string]*quantity.Bound[quantity.Number], once bool) {
	bounds = map[string]*quantity.Bound[quantity.Number]{}
	for _, c := range list {
		bounds[c.Metric] = &c.Is
	}
	return bounds, len(bounds) == len(list)
}

func metrics(lists ...[]MetricCondition) []string {
	var names []string
	for _, c := range slices.Concat(lists...) {
		names = append(names, c.Metric)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func conditions(list []MetricCondition, join string) string {
	var words []string
	for _, c := range list {
		words = append(words, c.Metric+" "+c.Is.String())
	}
	return strings.Join(words, join)
}
