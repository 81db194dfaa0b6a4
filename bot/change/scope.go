package change

import (
	"slices"
	"strings"
)

// A Scope is what a decision holds for, in the repository of its change: one head, the branch that
// the head goes to, and what that branch asks. An author may change the base of a pull request at
// any time, and every base has its own policy. So an override, an approval or a conclusion for one
// base says nothing about another.
type Scope struct {
	Head  string `json:"head"`
	Base  string `json:"base"`
	Rules string `json:"rules"` // digest of what the base asks of kernels
}

// requirements is the part of a digest of rules that is about what the base asks. The other part is
// about the sources that kernels are built from, which change with every merge; see planner.Rules.
func requirements(rules string) string {
	asks, _, _ := strings.Cut(rules, "-")
	return asks
}

// NewScope is the scope of a head that goes to a base. The rules are the digest that a plan has.
func NewScope(head, base, rules string) Scope {
	return Scope{Head: head, Base: base, Rules: requirements(rules)}
}

// Scope is what a decision on the change would hold for now. It is unknown while there is no plan of
// the current facts.
func (s *State) Scope() (Scope, bool) {
	p := s.Current()
	if p == nil {
		return Scope{}, false
	}
	return NewScope(s.Facts.Head, s.Facts.Base, p.Rules), true
}

// holds reports whether a decision for a scope holds now.
func (s *State) holds(of Scope) bool {
	now, known := s.Scope()
	return known && of == now
}

// A VoidDecision does not hold any more, since the base or its rules are different now.
type VoidDecision struct {
	Command string `json:"command"` // that gave it
	By      string `json:"by"`
	For     Scope  `json:"for"`
}

const maxVoided = 5

// voidDecisions drops the decisions about the head that do not hold for this base and these rules,
// and remembers them, so that people can see why the check is not green any more. Empty rules are not known yet.
func (s *State) voidDecisions(base, rules string) {
	stale := func(command, by string, of Scope) bool {
		if of.Base == base && (rules == "" || of.Rules == rules) {
			return false
		}
		if of.Head == s.Facts.Head {
			s.Voided = newest(append(s.Voided, VoidDecision{Command: command, By: by, For: of}), maxVoided)
		}
		return true
	}
	if o := s.Override; o != nil && stale("override", o.By, o.For) {
		s.Override = nil
	}
	if a := s.RulesApproved; a != nil && stale("approve-policy", a.By, a.For) {
		s.RulesApproved = nil
	}
	s.Approved = slices.DeleteFunc(s.Approved, func(a ForkApproved) bool { return stale("ok-to-test", a.By, a.For) })
}

// Outdated is the names of the checks on the head whose conclusion GitHub shows although it was reached
// for a different base, or for different rules of the base, sorted. There are none once there is a plan,
// which leads to new conclusions. Until then nobody may merge by the old ones.
func (s *State) Outdated() []string {
	if !s.NeedsPlan() {
		return nil
	}
	rules := requirements(s.Facts.Rules) // once they changed
	return s.checksWhere(s.Facts.Head, func(c Posted) bool {
		return c.Done && (c.For.Base != s.Facts.Base || rules != "" && c.For.Rules != rules)
	})
}

// Concluded is the names of the checks that this change has concluded on a commit, sorted.
func (s *State) Concluded(sha string) []string {
	return s.checksWhere(sha, func(c Posted) bool { return c.Done })
}

func (s *State) checksWhere(sha string, meant func(Posted) bool) []string {
	var names []string
	for key, posted := range s.Checks {
		if name, of := splitCheckKey(key); of == sha && meant(posted) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// PostedScope is what the conclusion of a check that shows this state holds for. Without a plan for the base, it holds for none.
func (s *State) PostedScope() Scope {
	if s.Plan == nil || s.Plan.Superseded() {
		return Scope{Head: s.Facts.Head}
	}
	return NewScope(s.Facts.Head, s.Facts.Base, s.Plan.Rules)
}

// EvidenceHolds reports whether the evidence of a run is about a kernel of a plan: for the same head, from the same sources of both
// sides, and from runners that the base's policy allows. A run for a different base is in the past, see State.seen. The policy of
// the base may ask something different of the evidence by now, so it is judged again.
func EvidenceHolds(r Run, head string, kernel KernelSpec) bool {
	return r.Head == head && r.Sources == kernel.Sources && r.Phase != Abandoned && slices.Equal(r.Labels, kernel.Labels)
}
