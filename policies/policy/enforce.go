package policy

import (
	"strings"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// Enforce says what the verdict of a rule does to a pull request. A rule that does not block never
// takes a change away from a rule that does: see [Policy.RuleFor].
type Enforce string

const (
	EnforceShadow Enforce = "shadow" // the verdict is shown
	EnforceWarn   Enforce = "warn"   // the verdict is shown as a warning
	EnforceBlock  Enforce = "block"  // a change that does not pass cannot be merged

	// EnforceInform is that of a verdict on a device that only informs, whatever its rule is. No rule
	// can ask for it.
	EnforceInform Enforce = "inform"
)

// enforces ends with the strictest.
var enforces = []Enforce{EnforceShadow, EnforceWarn, EnforceBlock}

func (e *Enforce) UnmarshalStrict(n *strict.Node) { strict.Word(n, e, enforces) }
func (e *Enforce) JSONSchema() map[string]any     { return strict.WordSchema(enforces) }

// Blocks reports whether a change that does not pass is kept from being merged. Only the words
// for it turn that off.
func (e Enforce) Blocks() bool { return e != EnforceShadow && e != EnforceWarn && e != EnforceInform }

// TrialFor returns the rule that is tried on the change in addition to the rule that applies: the
// first that matches and does not block. It is nil if there is none, or if it is the rule that
// applies.
func (p *Policy) TrialFor(c Change) *Rule {
	applies := p.RuleFor(c)
	for i := range p.Rules {
		rule := &p.Rules[i]
		if rule == applies {
			return nil // the rules behind it are never reached
		}
		if !rule.Enforce.Blocks() && rule.When.Matches(c) {
			return rule
		}
	}
	return nil
}

// checkEnforce refuses a policy whose blocking rules an author can avoid. If the default rule does
// not block, a change that matches no other rule is merged whatever its verdict is. Labels, the
// title, the draft state and the changed files are the author's choice; the base branch and the
// kernel are not.
func (p *Policy) checkEnforce(n *strict.Node) {
	rules := n.Items()
	if len(rules) != len(p.Rules) || len(rules) == 0 {
		return
	}
	last := len(rules) - 1
	if p.Rules[last].Enforce.Blocks() {
		return
	}
	for i, rule := range p.Rules[:last] {
		if chosen := rule.When.chosenByAuthor(); rule.Enforce.Blocks() && chosen != "" {
			rules[i].Child("when").Errorf("a change avoids this rule by its %s, because the default rule does not block (let the default rule block, or use only branches and kernels here)", chosen)
		}
	}
}

// chosenByAuthor names the given conditions that the author of a change decides.
func (w When) chosenByAuthor() string {
	var chosen []string
	for _, c := range []struct {
		name  string
		given bool
	}{
		{"labels", len(w.Labels) > 0}, {"paths", len(w.Paths) > 0}, {"title", w.Title.Regexp != nil}, {"draft state", w.Draft != nil},
	} {
		if c.given {
			chosen = append(chosen, c.name)
		}
	}
	return strings.Join(chosen, " and ")
}

// compareEnforce compares the enforcement of a rule. A rule that begins to block takes its changes
// away from the blocking rules behind it, which may ask for more. Only the default rule has none
// behind it.
func compareEnforce(l *compare.List, path string, old, new Enforce, isDefault bool) {
	if !old.Blocks() && new.Blocks() && !isDefault {
		l.Add(path, string(old), string(new), compare.Changes)
		return
	}
	compareWord(l, path, enforces, old, new)
}
