package policy

import (
	"fmt"
	"strings"
)

// RuleNames lists the rules in their order.
func (p *Policy) RuleNames() []string {
	var names []string
	for _, r := range p.Rules {
		names = append(names, r.Name)
	}
	return names
}

// Explain says, for people, which rule applies to a change and what it asks.
func (p *Policy) Explain(file string, c Change) string {
	rule := p.RuleFor(c)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: rule %s applies.\n", file, rule.Name)
	if !rule.Enforce.Blocks() {
		fmt.Fprintf(&b, "  (enforce: %s: its verdict blocks nothing)\n", rule.Enforce)
	}
	for _, earlier := range p.PassedOver(c) {
		fmt.Fprintf(&b, "  (%s does not: it is for %s)\n", earlier.Rule, earlier.For)
	}
	if trial := p.TrialFor(c); trial != nil {
		fmt.Fprintf(&b, "  (%s is tried as well, with enforce: %s: its verdict is shown and blocks nothing)\n", trial.Name, trial.Enforce)
	}
	b.WriteString("\nIt asks, in this order:\n")
	for _, a := range rule.Asked() {
		if !a.Decides {
			a.Text += " (informs only)"
		}
		fmt.Fprintf(&b, "  %-12s %s\n", a.Gate, a.Text)
	}
	if text := p.Devices.Explain(); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	return b.String()
}

// A PassedOver is a rule before the one that applies, and what it is for.
type PassedOver struct {
	Rule string `json:"rule"`
	For  string `json:"for"` // what the change would have to be
}

// PassedOver lists the rules before the one that applies. Rules that match and do not block are not
// among them.
func (p *Policy) PassedOver(c Change) []PassedOver {
	applies := p.RuleFor(c).Name
	var list []PassedOver
	for _, r := range p.Rules {
		if r.Name == applies {
			break
		}
		if !r.When.Matches(c) {
			list = append(list, PassedOver{r.Name, r.When.unmet(c)})
		}
	}
	return list
}

// An Asked is what one gate asks, as text.
type Asked struct {
	Gate    string `json:"gate"`
	Text    string `json:"asks"`
	Decides bool   `json:"decides"`
}

// Asked returns what a rule asks, gate by gate in their order.
func (r *Rule) Asked() []Asked {
	var list []Asked
	for _, d := range inOrder {
		if g := d.asked(&r.Gates); g != nil {
			list = append(list, Asked{d.name, g.String(), g.Decides()})
		}
	}
	return list
}

// unmet names the conditions that the change does not meet.
func (w When) unmet(c Change) string {
	var unmet []string
	for _, given := range w.conditions() {
		if !given.met(c) {
			unmet = append(unmet, given.who)
		}
	}
	return strings.Join(unmet, ", and ")
}
