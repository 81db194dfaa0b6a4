package policy

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
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
	g := r.Gates
	list := []Asked{{"build", fmt.Sprintf("the kernel compiles within %v", g.Build.Timeout), g.Build.Decides()}}
	if g.PTXAS != nil {
		list = append(list, Asked{"ptxas", g.PTXAS.String(), g.PTXAS.Decides()})
	}
	if g.Correctness != nil {
		list = append(list, Asked{"correctness", g.Correctness.String(), g.Correctness.Decides()})
	}
	if g.Sanitize != nil {
		list = append(list, Asked{"sanitize", g.Sanitize.String(), g.Sanitize.Decides()})
	}
	if g.Performance != nil {
		list = append(list, Asked{"performance", g.Performance.String(), g.Performance.Decides()})
	}
	if g.Profile != nil {
		list = append(list, Asked{"profile", g.Profile.String(), g.Profile.Decides()})
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

func (g PTXASGate) String() string {
	asked := g.Registers.asked("registers")
	for field, b := range g.sizes() {
		asked = append(asked, b.asked(strings.ReplaceAll(field, "_", " "))...)
	}
	if g.BlocksPerSM != nil {
		asked = append(asked, "blocks per SM "+g.BlocksPerSM.String())
	}
	return orNothing(asked, "no limit; the figures are shown")
}

func (b *Budget[T]) asked(name string) []string {
	var asked []string
	if b != nil && b.Max != nil {
		asked = append(asked, fmt.Sprintf("%s %v", name, quantity.Bound[T]{Op: quantity.AtMost, Value: *b.Max}))
	}
	if b != nil && b.Increase != nil {
		asked = append(asked, fmt.Sprintf("%s increase %v", name, b.Increase))
	}
	return asked
}

func (g CorrectnessGate) String() string {
	var seeds []string
	for _, seed := range g.Seeds {
		seeds = append(seeds, fmt.Sprint(seed))
	}
	text := fmt.Sprintf("%s × seeds %s × %s inputs", g.Shapes, strings.Join(seeds, ", "), strict.JoinWords(g.Distributions))
	if g.SecretCases > 0 {
		text += fmt.Sprintf(", and %v secret cases", g.SecretCases)
	}
	bounds := g.Bounds().asked()
	if g.EndToEnd != nil {
		bounds = append(bounds, "end to end "+strings.Join(g.EndToEnd.asked(), " and "))
	}
	if g.Determinism {
		bounds = append(bounds, "deterministic")
	}
	if g.BitParity {
		bounds = append(bounds, "bit-identical to the baseline")
	}
	if g.Existing == ExistingDefers {
		bounds = append(bounds, "also where the baseline fails the same case")
	}
	return text + ": " + orNothing(bounds, "no bound; the errors are shown")
}

func orNothing(asked []string, nothing string) string {
	if len(asked) == 0 {
		return nothing
	}
	return strings.Join(asked, ", ")
}

func (b ErrorBounds) asked() []string {
	var asked []string
	if b.MaxAbs != nil {
		asked = append(asked, "max |err| "+b.MaxAbs.String())
	}
	if b.MeanAbs != nil {
		asked = append(asked, "mean |err| "+b.MeanAbs.String())
	}
	switch {
	case b.Bad == nil:
	case b.Bad.String() == "<= 0%":
		asked = append(asked, "no element beyond the tolerance")
	default:
		asked = append(asked, "bad elements "+b.Bad.String())
	}
	if b.Norm != nil {
		asked = append(asked, "norm error "+b.Norm.String())
	}
	return asked
}

func (g PerformanceGate) String() string {
	var parts, looks []string
	if g.Target != nil {
		parts = append(parts, g.Target.String())
	}
	if g.Guard != nil {
		lost := "guard: " + g.Guard.String()
		if g.TimesSecretShape() {
			lost += " and on one random size"
		}
		parts = append(parts, lost)
	}
	if tails := g.Tails.given(); tails != nil {
		parts = append(parts, tails.String())
	}
	for _, look := range g.Looks {
		looks = append(looks, fmt.Sprint(look))
	}
	return fmt.Sprintf("against %s: %s; proven at %s in %s to %s rounds of %s pairs, looks after %s, within %v",
		g.Baseline, strings.Join(parts, "; "), g.Confidence, g.Rounds.Min, g.Rounds.Max, g.Pairs, strings.Join(looks, ", "), g.Budget)
}

func (t Tails) String() string {
	var parts []string
	if t.Mean != nil && t.P90 != nil && *t.Mean == *t.P90 {
		return fmt.Sprintf("mean and p90 at most %s short of that", *t.Mean)
	}
	if t.Mean != nil {
		parts = append(parts, fmt.Sprintf("mean at most %s", *t.Mean))
	}
	if t.P90 != nil {
		parts = append(parts, fmt.Sprintf("p90 at most %s", *t.P90))
	}
	return strings.Join(parts, " and ") + " short of that"
}

func (g ProfileGate) String() string {
	text := conditions(g.All, " and ")
	if len(g.Any) > 0 {
		if text != "" {
			text += ", and "
		}
		text += "one of " + conditions(g.Any, " or ")
	}
	return fmt.Sprintf("on %s: %s", g.Shapes, text)
}
