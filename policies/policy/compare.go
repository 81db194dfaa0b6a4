package policy

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Compare returns how the new policy differs from the old: which requirements change for which
// changes, rule by rule, with the gates as they hold after all layers. A difference that all rules
// have is listed once, as rules[*].
func Compare(old, new *Policy) compare.List {
	var l compare.List
	l.Unknown("version", old.Version, new.Version)
	l.Unknown("check", old.Check, new.Check)
	compareDevices(&l, old.Devices, new.Devices)
	compareToolchains(&l, old.Toolchains, new.Toolchains)
	compareCommands(&l, old.Commands, new.Commands)
	compareWord(&l, "forks.run", forkModes, old.Forks.Run, new.Forks.Run)
	return append(l, compareRules(old, new)...)
}

func compareCommands(l *compare.List, old, new Commands) {
	for _, c := range []struct {
		name     string
		old, new Role
	}{
		{"rebench", old.Rebench, new.Rebench}, {"tune", old.Tune, new.Tune}, {"bisect", old.Bisect, new.Bisect},
		{"cancel", old.Cancel, new.Cancel}, {"explain", old.Explain, new.Explain},
		{"override", old.Override, new.Override}, {"ok-to-test", old.OKToTest, new.OKToTest},
		{"approve-policy", old.ApprovePolicy, new.ApprovePolicy}, {"help", old.Help, new.Help},
	} {
		compareWord(l, "commands."+c.name, roles, c.old, c.new)
	}
}

// compareWord compares words on a scale that ends with the strictest.
func compareWord[T ~string](l *compare.List, path string, scale []T, old, new T) {
	was, is := slices.Index(scale, old), slices.Index(scale, new)
	d := compare.Loosens
	switch {
	case was < 0 || is < 0:
		d = compare.Changes
	case is > was:
		d = compare.Tightens
	}
	if old != new {
		l.Add(path, string(old), string(new), d)
	}
}

// compareRules pairs rules by name. Which changes a rule is for, and the order of the rules, decide
// what is asked of a change. The direction of such a difference is unknown.
func compareRules(old, new *Policy) compare.List {
	var l compare.List
	l.Unknown("rules", old.RuleNames(), new.RuleNames())
	var common []compare.List
	for _, was := range old.Rules {
		i := slices.IndexFunc(new.Rules, func(r Rule) bool { return r.Name == was.Name })
		if i < 0 {
			continue
		}
		is := new.Rules[i]
		l.Unknown("rules["+was.Name+"].when", was.When, is.When)
		compareEnforce(&l, "rules["+was.Name+"].enforce", was.Enforce, is.Enforce, is.Name == defaultRule)
		common = append(common, compareGates("rules["+was.Name+"].gates", was.Gates, is.Gates))
	}
	return append(l, told(common)...)
}

// told returns the differences of all rules. A difference that all of them have is listed once.
func told(rules []compare.List) compare.List {
	const every = "rules[*]"
	bare := func(d compare.Difference) compare.Difference {
		_, field, _ := strings.Cut(d.Path, "]")
		d.Path = every + field
		return d
	}
	seen := map[compare.Difference]int{}
	for _, list := range rules {
		for _, d := range list {
			seen[bare(d)]++
		}
	}
	var l compare.List
	for i, list := range rules {
		for _, d := range list {
			switch everywhere := len(rules) > 1 && seen[bare(d)] == len(rules); {
			case !everywhere:
				l = append(l, d)
			case i == 0:
				l = append(l, bare(d))
			}
		}
	}
	return l
}

func (w When) String() string {
	var words []string
	for _, given := range w.conditions() {
		words = append(words, given.who)
	}
	if words == nil {
		return "every change"
	}
	return strings.Join(words, ", and ")
}

// implies reports whether everything that meets b also meets the other.
func implies[T quantity.Count | quantity.Bytes | quantity.Percent | quantity.Micros | quantity.Number](b, other quantity.Bound[T]) bool {
	if b.Lower() != other.Lower() {
		return false
	}
	if b.Value == other.Value {
		return b.Op == other.Op || b.Op == quantity.Above || b.Op == quantity.Below
	}
	return b.Lower() == (b.Value > other.Value)
}

// compareBound compares a bound. A missing bound allows everything.
func compareBound[T quantity.Count | quantity.Bytes | quantity.Percent | quantity.Micros | quantity.Number](l *compare.List, path string, old, new *quantity.Bound[T], comes compare.Direction) {
	if compare.Both(l, path, old, new, comes) {
		l.Way(path, old.String(), new.String(), implies(*new, *old), implies(*old, *new))
	}
}
