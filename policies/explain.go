package policies

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

// Explain says which rule applies to a change, and what it asks, for people.
func (p *Policy) Explain(file string, c Change) string {
	rule := p.RuleFor(c)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: rule %s applies.\n", file, rule.Name)
	for _, earlier := range p.Rules {
		if earlier.Name == rule.Name {
			break
		}
		fmt.Fprintf(&b, "  (%s does not: %s)\n", earlier.Name, earlier.When.mismatch(c))
	}
	b.WriteString("\nIt asks, in this order:\n")
	line := func(gate string, e Enforcement, text string) {
		if !e.Decides() {
			text += " (informs only)"
		}
		fmt.Fprintf(&b, "  %-12s %s\n", gate, text)
	}
	g := rule.Gates
	line("build", g.Build.Enforcement, fmt.Sprintf("the kernel compiles within %v", g.Build.Timeout))
	if g.PTXAS != nil {
		line("ptxas", g.PTXAS.Enforcement, strings.Join(g.PTXAS.asked(), ", "))
	}
	if g.Correctness != nil {
		line("correctness", g.Correctness.Enforcement, g.Correctness.asked())
	}
	if g.Performance != nil {
		line("performance", g.Performance.Enforcement, g.Performance.asked())
	}
	if g.Profile != nil {
		line("profile", g.Profile.Enforcement, g.Profile.asked())
	}
	return b.String()
}

// mismatch names the first condition that the change does not meet.
func (w When) mismatch(c Change) string {
	for _, part := range []struct {
		name string
		only When
	}{
		{"labels " + strings.Join(w.Labels, ", "), When{Labels: w.Labels}},
		{"branches " + strings.Join(w.Branches, ", "), When{Branches: w.Branches}},
		{"paths " + strings.Join(w.Paths, ", "), When{Paths: w.Paths}},
		{"kernels " + strings.Join(w.Kernels, ", "), When{Kernels: w.Kernels}},
		{"title", When{Title: w.Title}},
		{"draft", When{Draft: w.Draft}},
	} {
		if !part.only.Matches(c) {
			return "it is for " + part.name
		}
	}
	return "an earlier rule matched"
}

func (g *PTXASGate) asked() []string {
	var asked []string
	add := func(name string, max, increase fmt.Stringer) {
		if max != nil {
			asked = append(asked, fmt.Sprintf("%s <= %v", name, max))
		}
		if increase != nil {
			asked = append(asked, fmt.Sprintf("%s increase %v", name, increase))
		}
	}
	if b := g.Registers; b != nil {
		add("registers", stringer(b.Max), stringer(b.Increase))
	}
	for _, b := range []struct {
		name   string
		budget *BytesBudget
	}{
		{"static shared memory", g.StaticShared}, {"dynamic shared memory", g.DynamicShared}, {"shared memory", g.Shared},
		{"spill stores", g.SpillStores}, {"spill loads", g.SpillLoads}, {"stack", g.Stack}, {"code size", g.CodeSize},
	} {
		if b.budget != nil {
			add(b.name, stringer(b.budget.Max), stringer(b.budget.Increase))
		}
	}
	if g.BlocksPerSM != nil {
		asked = append(asked, "blocks per SM "+g.BlocksPerSM.String())
	}
	return asked
}

// stringer keeps a nil pointer from becoming a non-nil interface.
func stringer[T fmt.Stringer](v *T) fmt.Stringer {
	if v == nil {
		return nil
	}
	return *v
}

func (g *CorrectnessGate) asked() string {
	var names []string
	for _, d := range g.Distributions {
		names = append(names, string(d))
	}
	text := fmt.Sprintf("%s × seeds %v × %s inputs, and %v secret cases", g.Shapes, g.Seeds, strings.Join(names, ", "), g.SecretCases)
	bounds := g.Bounds().asked()
	if g.EndToEnd != nil {
		bounds = append(bounds, "end to end: "+strings.Join(g.EndToEnd.asked(), ", "))
	}
	if g.Determinism {
		bounds = append(bounds, "deterministic")
	}
	if g.BitParity {
		bounds = append(bounds, "bit-identical to the baseline")
	}
	return text + ": " + strings.Join(bounds, ", ")
}

func (b ErrorBounds) asked() []string {
	var asked []string
	if b.MaxAbs != nil {
		asked = append(asked, "max |err| "+b.MaxAbs.String())
	}
	if b.MeanAbs != nil {
		asked = append(asked, "mean |err| "+b.MeanAbs.String())
	}
	if b.Bad != nil {
		asked = append(asked, "bad elements "+b.Bad.String())
	}
	if b.Norm != nil {
		asked = append(asked, "norm error "+b.Norm.String())
	}
	return asked
}

func (g *PerformanceGate) asked() string {
	var parts []string
	if g.Target != nil {
		parts = append(parts, g.Target.String())
	}
	if g.Guard != nil {
		parts = append(parts, "not lost: "+g.Guard.String())
	}
	return fmt.Sprintf("against %s: %s; proven at %s in %s to %s rounds of %s pairs, looks %v, within %v",
		g.Baseline, strings.Join(parts, "; "), g.Confidence, g.Rounds.Min, g.Rounds.Max, g.Pairs, g.Looks, g.Budget)
}

func (g *ProfileGate) asked() string {
	list := func(conditions []MetricCondition, join string) string {
		var parts []string
		for _, c := range conditions {
			parts = append(parts, c.Metric+" "+c.Is.String())
		}
		return strings.Join(parts, join)
	}
	text := list(g.All, " and ")
	if len(g.Any) > 0 {
		if text != "" {
			text += ", and "
		}
		text += "one of " + list(g.Any, " or ")
	}
	return fmt.Sprintf("on %s: %s", g.Shapes, text)
}
