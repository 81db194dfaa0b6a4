package change

import (
	"slices"
	"strings"
)

// Inherit is what a merge group is, once its pull requests are known, with the decisions that it inherits from them. A decision is
// inherited only if it holds for the group's base, by the rules that the group was made on, and for the very
// head that the group contains: each member has it. Pulls are the members' states, in the same order.
func Inherit(f Facts, rules string, pulls []*State, at string) Seen {
	held := heldIn(f, rules, pulls)
	return Seen{Facts: f, Override: inheritOverride(f, rules, held), RulesApproved: inheritApproval(f, rules, held, at)}
}

// heldIn is the pull requests whose last plan is about what the group contains; nil for each of the others. That plan need not be the
// current one: every merge of the queue changes what the pull requests behind it are compared with.
func heldIn(f Facts, rules string, pulls []*State) []*State {
	held := make([]*State, len(f.Members))
	for i, pull := range pulls {
		goes := pull.Facts.Open && pull.Facts.Base == f.Base && pull.Facts.Head == f.Members[i].Head
		if p := pull.Plan; goes && p != nil && p.Head == pull.Facts.Head && requirements(p.Rules) == requirements(rules) {
			held[i] = pull
		}
	}
	return held
}

// inheritOverride is the override of a group. In a group of one pull request, its
// override applies to everything; in a larger group, each override applies to the kernels that its
// pull request touches.
func inheritOverride(f Facts, rules string, held []*State) *Override {
	var by, reasons []string
	all := Override{For: NewScope(f.Head, f.Base, rules)}
	for _, pull := range held {
		if pull == nil || pull.Override == nil || pull.Override.For != NewScope(pull.Facts.Head, f.Base, rules) || len(held) > 1 && len(pull.Runs) == 0 {
			continue
		}
		o := pull.Override
		if !slices.Contains(by, o.By) {
			by = append(by, o.By)
		}
		reasons, all.At = append(reasons, o.Reason), max(all.At, o.At)
		for _, r := range pull.Runs {
			if len(held) > 1 && !slices.Contains(all.Folders, r.Folder) {
				all.Folders = append(all.Folders, r.Folder)
			}
		}
	}
	if len(by) == 0 {
		return nil
	}
	all.By, all.Reason = strings.Join(by, ", @"), strings.Join(reasons, "; ")
	return &all
}

// inheritApproval is an approval if every pull request of a group that changes the rules is
// approved. A pull request that is not known counts as not approved.
func inheritApproval(f Facts, rules string, held []*State, at string) *RulesApproved {
	var by []string
	for _, pull := range held {
		if pull == nil {
			return nil
		}
		switch approved := pull.ApprovedRules(pull.Plan); {
		case approved != nil:
			by = append(by, approved.By)
		case pull.RulesWait(pull.Plan):
			return nil
		}
	}
	if len(by) == 0 {
		return nil
	}
	return &RulesApproved{For: NewScope(f.Head, f.Base, rules), By: strings.Join(by, ", @"), At: at}
}
