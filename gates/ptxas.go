package gates

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// ptxas compares the compiler's figures with their budgets.
func (j *judgement) ptxas() GateResult {
	gate, c := j.rule.Gates.PTXAS, j.evidence.Candidate
	if c == nil {
		return GateResult{Status: Missing, Found: facts.NoResources{}}
	}
	var all []GateResult
	for _, part := range c.judged() {
		r := j.ptxasOf(gate, part)
		if len(c.Parts) > 0 {
			r.Found = facts.OfVariant{Variant: part.Variant, Fact: r.Found}
		}
		all = append(all, r)
	}
	return mergeResults(all)
}

// mergeResults is one result of several: failed where one is, and missing where one is missing.
func mergeResults(all []GateResult) GateResult {
	for _, status := range []Status{Failed, Missing, Passed} {
		var r GateResult
		var found facts.Series
		for _, next := range all {
			if next.Status == status {
				r.Status, r.Reason = next.Status, next.Reason
				found, r.Steps = append(found, next.Found), append(r.Steps, next.Steps...)
			}
			r.More = append(r.More, next.More...)
		}
		if found != nil {
			r.Found = found
			return r
		}
	}
	return GateResult{Status: Missing, Found: facts.NoResources{}}
}

// ptxasOf compares one build's figures with the budgets and with the build of the baseline that serves the same shapes.
func (j *judgement) ptxasOf(gate *policy.PTXASGate, part Part) GateResult {
	c := &part.Build
	if c.Resources == nil && !gate.Limits() {
		return GateResult{Status: Passed, Found: facts.NoResources{Unlimited: true}}
	}
	if c.Resources == nil {
		return GateResult{Status: Missing, Found: facts.NoResources{}}
	}
	b := j.evidence.Baseline
	if b != nil && len(part.Shapes) > 0 {
		b = b.Serving(part.Shapes[0])
	}
	t := resourceTable{baseline: b.uses(), candidate: c.uses()}
	if len(part.Shapes) > 0 {
		t.variant = c.Variant
	}
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
	j.resources = append(j.resources, t.named()...)

	r := GateResult{More: facts.Quotes(c.Resources.Warnings)}
	if len(c.Resources.Globals) > 0 {
		j.note(facts.KeepsState{Globals: c.Resources.Globals, CPU: j.evidence.Can().onHost()})
	}
	switch {
	case len(t.exceeded) > 0:
		r.Status, r.Reason, r.Steps = Failed, ReasonResources, t.steps
		over := facts.OverBudget{}
		for _, e := range t.exceeded {
			over.Exceeded = append(over.Exceeded, e.fact)
			j.findings = append(j.findings, Diagnostic{File: c.Source, Line: e.line, Severity: "error", Message: e.fact.Sentence()})
		}
		r.Found = over
	case len(t.missing.Resources) > 0 || t.missing.Occupancy:
		r.Status, r.Found = Missing, t.missing
	default:
		r.Status, r.Found = Passed, t.within(c.Arch)
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
	variant             string // of a choice by problem size; else empty
	rows                []ResourceRow
	exceeded            []overBudget
	steps               []facts.Advice
	missing             facts.NotRecorded
}

// An overBudget is a figure beyond its budget, with the line of its kernel.
type overBudget struct {
	fact facts.Fact
	line int
}

func (t *resourceTable) exceed(u KernelUse, found facts.Fact, step facts.Advice) {
	t.exceeded, t.steps = append(t.exceeded, overBudget{found, u.Line}), append(t.steps, step)
}

// named is the rows with the variant of a choice that they are of.
func (t *resourceTable) named() []ResourceRow {
	if t.variant != "" {
		for i := range t.rows {
			t.rows[i].Name += " of " + t.variant
		}
	}
	return t.rows
}

// count adds the row of one figure. A reported figure is shown, and judged where it has a budget.
func count[T quantity.Count | quantity.Bytes](t *resourceTable, name, unit string, budget *policy.Budget[T], get func(*Resources) *int) {
	use, got := worst(t.candidate, get)
	_, base := worst(t.baseline, get)
	if got == nil {
		if budget != nil {
			t.missing.Resources = append(t.missing.Resources, name)
		}
		return
	}
	row := ResourceRow{Name: name, Unit: unit, Candidate: toFloat(got), Baseline: toFloat(base), Status: NotRun}
	if budget == nil {
		t.rows = append(t.rows, row)
		return
	}
	row.Status = Passed
	resource := facts.Resource{Name: name, Unit: unit, Kernel: use.Entry}
	var limits []string
	if budget.Max != nil {
		limits = append(limits, fmt.Sprintf("≤ %v", *budget.Max))
		if *got > int(*budget.Max) {
			row.Status = Failed
			over := facts.OverLimit{Resource: resource, Value: *got, Limit: int(*budget.Max)}
			t.exceed(use, over, facts.Reduce{OverLimit: over, Variant: t.variant})
		}
	}
	if budget.Increase != nil && base != nil {
		limits = append(limits, fmt.Sprintf("increase %s", *budget.Increase))
		if !budget.Increase.Holds(float64(*got - *base)) {
			row.Status = Failed
			grown := facts.Grown{Resource: resource, Value: *got, Baseline: *base, Asked: budget.Increase.String()}
			t.exceed(use, grown, facts.LimitIncrease{Grown: grown, Variant: t.variant})
		}
	}
	row.Limit = strings.Join(limits, ", ")
	t.rows = append(t.rows, row)
}

// occupancy adds the row of the blocks per SM, which needs the block size in addition to the compiler's figures.
func (t *resourceTable) occupancy(bound *quantity.Bound[quantity.Count], arch string) {
	use, blocks, limit, ok := leastBlocks(t.candidate, arch)
	if !ok {
		t.missing.Occupancy = bound != nil
		return
	}
	row := ResourceRow{Name: "blocks per SM", Candidate: toFloat(&blocks), Status: NotRun}
	if _, base, _, ok := leastBlocks(t.baseline, arch); ok {
		row.Baseline = toFloat(&base)
	}
	if bound != nil {
		row.Limit, row.Status = bound.String(), Passed
		if !bound.Holds(float64(blocks)) {
			row.Status = Failed
			few := facts.FewBlocks{Kernel: use.Entry, Blocks: blocks, Asked: bound.String(), LimitedBy: limit}
			t.exceed(use, few, facts.FitMoreBlocks{FewBlocks: few, Variant: t.variant})
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

// within is the figures of each kernel or, of many kernels, the worst figures.
func (t *resourceTable) within(arch string) facts.WithinBudget {
	const few = 3
	if n := len(t.candidate); n > few {
		return facts.WithinBudget{Kernels: []facts.KernelFigures{figuresOf(t.candidate, arch)}, WorstOf: n}
	}
	var w facts.WithinBudget
	for _, u := range t.candidate {
		figures := figuresOf([]KernelUse{u}, arch)
		figures.Kernel = u.Entry
		w.Kernels = append(w.Kernels, figures)
	}
	return w
}

// figuresOf is the highest figures of kernels, and the fewest of their blocks.
func figuresOf(all []KernelUse, arch string) facts.KernelFigures {
	r := MaxResources(all)
	f := facts.KernelFigures{Registers: r.Registers, Stack: r.Stack, CodeSize: r.CodeSize}
	_, f.Shared = worst(all, (*Resources).shared)
	if _, n, _, ok := leastBlocks(all, arch); ok {
		f.Blocks = &n
	}
	if r.SpillStores != nil {
		spilt := *r.SpillStores
		if r.SpillLoads != nil {
			spilt += *r.SpillLoads
		}
		f.Spilt = &spilt
	}
	return f
}

func toFloat(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
