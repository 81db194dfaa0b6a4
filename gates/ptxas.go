package gates

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// ptxas holds the compiler's figures against their budgets.
func (j *judgement) ptxas() GateResult {
	gate, c := j.rule.Gates.PTXAS, j.evidence.Candidate
	if c == nil {
		return GateResult{Status: Missing, Text: "no resource usage was recorded"}
	}
	var all []GateResult
	for _, part := range c.judged() {
		r := j.ptxasOf(gate, part)
		if len(c.Parts) > 0 {
			r.Text = part.Variant + ": " + r.Text
		}
		all = append(all, r)
	}
	return inOne(all)
}

// inOne is one result of several: failed where one is, and missing where one is missing.
func inOne(all []GateResult) GateResult {
	for _, status := range []Status{Failed, Missing, Passed} {
		var r GateResult
		var texts []string
		for _, next := range all {
			if next.Status == status {
				r.Status, r.Reason = next.Status, next.Reason
				texts, r.ToPass = append(texts, next.Text), append(r.ToPass, next.ToPass...)
			}
			r.Details = append(r.Details, next.Details...)
		}
		if r.Text = strings.Join(texts, "; "); texts != nil {
			return r
		}
	}
	return GateResult{Status: Missing, Text: "no resource usage was recorded"}
}

// ptxasOf holds one build's figures against the budgets, beside those of the baseline that
// serves the same shapes.
func (j *judgement) ptxasOf(gate *policy.PTXASGate, part Part) GateResult {
	c := &part.Build
	if c.Resources == nil && !gate.Limits() {
		return GateResult{Status: Passed, Text: "no resource usage was recorded, and the policy limits none"}
	}
	if c.Resources == nil {
		return GateResult{Status: Missing, Text: "no resource usage was recorded"}
	}
	b := j.evidence.Baseline
	if b != nil && len(part.Shapes) > 0 {
		b = b.Serving(part.Shapes[0])
	}
	t := resourceTable{baseline: b.uses(), candidate: c.uses()}
	count(&t, "registers", "", gate.Registers, func(r *Resources) *int { return r.Registers })
	count(&t, "static shared memory", "B", gate.StaticShared, func(r *Resources) *int { return r.StaticShared })
	count(&t, "dynamic shared memory", "B", gate.DynamicShared, func(r *Resources) *int { return r.DynamicShared })
	count(&t, "shared memory", "B", gate.Shared, (*Resources).shared)
	count(&t, "spill stores", "B", gate.SpillStores, func(r *Resources) *int { return r.SpillStores })
	count(&t, "spill loads", "B", gate.SpillLoads, func(r *Resources) *int { return r.SpillLoads })
	count(&t, "stack", "B", gate.Stack, func(r *Resources) *int { return r.Stack })
	count(&t, "code size", "B", gate.CodeSize, func(r *Resources) *int { return r.CodeSize })
	t.occupancy(gate.BlocksPerSM, c.Arch)
	t.perKernel(c.Arch)
	t.scratch(c, b)
	if len(part.Shapes) > 0 {
		t.name(c.Variant)
	}
	j.resources = append(j.resources, t.rows...)

	r := GateResult{Details: c.Resources.Warnings}
	if len(c.Resources.Globals) > 0 {
		j.notes = append(j.notes, "The kernel keeps state between launches in device memory: "+strings.Join(c.Resources.Globals, ", ")+".")
	}
	switch {
	case len(t.failures) > 0:
		r.Status, r.Reason = Failed, ReasonResources
		r.Text = "Over budget: " + strings.Join(t.failed(), "; ")
		r.ToPass = t.toPass
		for _, failure := range t.failures {
			j.findings = append(j.findings, Diagnostic{File: c.Source, Line: failure.line, Severity: "error", Message: failure.text})
		}
	case len(t.missing) > 0:
		r.Status = Missing
		r.Text = "not recorded: " + strings.Join(t.missing, ", ")
	default:
		r.Status, r.Text = Passed, t.headline(c.Arch)
	}
	return r
}

func (r *Resources) shared() *int {
	if r.StaticShared == nil && r.DynamicShared == nil {
		return nil
	}
	sum := 0
	for _, part := range []*int{r.StaticShared, r.DynamicShared} {
		if part != nil {
			sum += *part
		}
	}
	return &sum
}

// A resourceTable collects rows and what is wrong with them.
type resourceTable struct {
	baseline, candidate []KernelUse
	rows                []ResourceRow
	failures            []overBudget
	toPass              []string
	missing             []string
}

// An overBudget is a figure that is too high, with the line of its kernel.
type overBudget struct {
	text string
	line int
}

func (t *resourceTable) fail(u KernelUse, format string, args ...any) {
	t.failures = append(t.failures, overBudget{fmt.Sprintf(format, args...), u.Line})
}

func (t *resourceTable) failed() []string {
	var texts []string
	for _, f := range t.failures {
		texts = append(texts, f.text)
	}
	return texts
}

// name says of which variant of a choice the table is.
func (t *resourceTable) name(variant string) {
	for i := range t.rows {
		t.rows[i].Name += " of " + variant
	}
	for i := range t.toPass {
		t.toPass[i] += " in " + variant
	}
}

// count adds the row of one figure: shown when it was reported, judged when a
// budget is set.
func count[T quantity.Count | quantity.Bytes](t *resourceTable, name, unit string, budget *policy.Budget[T], get func(*Resources) *int) {
	use, got := worst(t.candidate, get)
	_, base := worst(t.baseline, get)
	if got == nil {
		if budget != nil {
			t.missing = append(t.missing, name)
		}
		return
	}
	row := ResourceRow{Name: name, Unit: unit, Candidate: float(got), Baseline: float(base), Status: NotRun}
	if budget == nil {
		t.rows = append(t.rows, row)
		return
	}
	row.Status = Passed
	show := func(n int) string { return fmt.Sprint(T(n)) }
	var limits []string
	if budget.Max != nil {
		limits = append(limits, fmt.Sprintf("≤ %v", *budget.Max))
		if over := *got - int(*budget.Max); over > 0 {
			row.Status = Failed
			t.fail(use, "%s%s %s (at most %v)", name, use.of(), show(*got), *budget.Max)
			t.toPass = append(t.toPass, fmt.Sprintf("cut %s%s by %s, to at most %v", name, use.of(), show(over), *budget.Max))
		}
	}
	if budget.Increase != nil && base != nil {
		limits = append(limits, fmt.Sprintf("increase %s", *budget.Increase))
		if grown := *got - *base; !budget.Increase.Holds(float64(grown)) {
			row.Status = Failed
			t.fail(use, "%s%s %s is %s more than the baseline's %s (increase %s)", name, use.of(), show(*got), show(grown), show(*base), *budget.Increase)
			t.toPass = append(t.toPass, fmt.Sprintf("keep the increase of %s%s at %s", name, use.of(), *budget.Increase))
		}
	}
	row.Limit = strings.Join(limits, ", ")
	t.rows = append(t.rows, row)
}

// occupancy needs the block size beside the compiler's figures.
func (t *resourceTable) occupancy(bound *quantity.Bound[quantity.Count], arch string) {
	use, blocks, limit, ok := leastBlocks(t.candidate, arch)
	if !ok {
		if bound != nil {
			t.missing = append(t.missing, "blocks per SM (needs registers, block size and a known architecture)")
		}
		return
	}
	row := ResourceRow{Name: "blocks per SM", Candidate: float(&blocks), Status: NotRun}
	if _, base, _, ok := leastBlocks(t.baseline, arch); ok {
		row.Baseline = float(&base)
	}
	if bound != nil {
		row.Limit, row.Status = bound.String(), Passed
		if !bound.Holds(float64(blocks)) {
			row.Status = Failed
			t.fail(use, "%s per SM%s (asked %s; limited by %s)", plural(blocks, "block"), use.of(), bound, limit)
			t.toPass = append(t.toPass, fmt.Sprintf("use less of %s, until the SM holds %s blocks%s", limit, bound, use.of()))
		}
	}
	t.rows = append(t.rows, row)
}

func occupancyOf(r *Resources, arch string) (blocks int, limit string, ok bool) {
	if r.Registers == nil || r.BlockThreads == nil {
		return 0, "", false
	}
	shared := 0
	if s := r.shared(); s != nil {
		shared = *s
	}
	return BlocksPerSM(arch, *r.BlockThreads, *r.Registers, shared)
}

// headline names the figures that people ask for first, of each kernel or, of many, the worst.
func (t *resourceTable) headline(arch string) string {
	const few = 3
	var parts []string
	for _, u := range t.candidate {
		text := figuresOf([]KernelUse{u}, arch)
		if u.Entry != "" {
			text = u.Entry + ": " + text
		}
		parts = append(parts, text)
	}
	if n := len(parts); n > few {
		parts = []string{fmt.Sprintf("the worst of %d kernels: %s", n, figuresOf(t.candidate, arch))}
	}
	return strings.Join(parts, "; ") + "; within budget"
}

// figuresOf is the highest figures of kernels, and the fewest of their blocks.
func figuresOf(all []KernelUse, arch string) string {
	r := Most(all)
	var parts []string
	if r.Registers != nil {
		parts = append(parts, fmt.Sprintf("%d registers", *r.Registers))
	}
	if _, n := worst(all, (*Resources).shared); n != nil {
		parts = append(parts, fmt.Sprintf("%.1f KiB shared memory", float64(*n)/1024))
	}
	if r.Registers == nil {
		for _, f := range []struct {
			n    *int
			name string
		}{{r.Stack, "stack"}, {r.CodeSize, "code size"}} {
			if f.n != nil {
				parts = append(parts, fmt.Sprintf("%s %s", quantity.Bytes(*f.n), f.name))
			}
		}
	}
	if _, n, _, ok := leastBlocks(all, arch); ok {
		parts = append(parts, plural(n, "block")+" per SM")
	}
	if r.SpillStores != nil {
		spills := *r.SpillStores
		if r.SpillLoads != nil {
			spills += *r.SpillLoads
		}
		parts = append(parts, fmt.Sprintf("%d B spilled", spills))
	}
	return strings.Join(parts, ", ")
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
