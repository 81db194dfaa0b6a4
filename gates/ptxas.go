package gates

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/policies"
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
	return worst(all)
}

// worst is one result of several: failed where one is, and missing where one is missing.
func worst(all []GateResult) GateResult {
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
func (j *judgement) ptxasOf(gate *policies.PTXASGate, part Part) GateResult {
	c := &part.Build
	if c.Resources == nil {
		return GateResult{Status: Missing, Text: "no resource usage was recorded"}
	}
	t := resourceTable{baseline: &Resources{}, candidate: c.Resources, imported: j.evidence.Imported != ""}
	if b := j.evidence.Baseline; b != nil {
		if len(part.Shapes) > 0 {
			b = b.Serving(part.Shapes[0])
		}
		if b.Resources != nil {
			t.baseline = b.Resources
		}
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
		r.Text = "Over budget: " + strings.Join(t.failures, "; ")
		r.ToPass = t.toPass
		for _, failure := range t.failures {
			j.findings = append(j.findings, Diagnostic{File: c.Source, Line: c.EntryLine, Severity: "error", Message: failure})
		}
	case len(t.missing) > 0:
		r.Status = Missing
		r.Text = "not recorded: " + strings.Join(t.missing, ", ")
	default:
		r.Status, r.Text = Passed, t.headline()
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
	baseline, candidate *Resources
	imported            bool // absent figures are no fault
	rows                []ResourceRow
	failures            []string
	toPass              []string
	missing             []string
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
func count[T quantity.Count | quantity.Bytes](t *resourceTable, name, unit string, budget *policies.Budget[T], get func(*Resources) *int) {
	got, base := get(t.candidate), get(t.baseline)
	if got == nil {
		if budget != nil && !t.imported {
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
			t.failures = append(t.failures, fmt.Sprintf("%s %s (at most %v)", name, show(*got), *budget.Max))
			t.toPass = append(t.toPass, fmt.Sprintf("cut %s by %s, to at most %v", name, show(over), *budget.Max))
		}
	}
	if budget.Increase != nil && base != nil {
		limits = append(limits, fmt.Sprintf("increase %s", *budget.Increase))
		if grown := *got - *base; !budget.Increase.Holds(float64(grown)) {
			row.Status = Failed
			t.failures = append(t.failures, fmt.Sprintf("%s %s is %s more than the baseline's %s (increase %s)", name, show(*got), show(grown), show(*base), *budget.Increase))
			t.toPass = append(t.toPass, fmt.Sprintf("keep the increase of %s at %s", name, *budget.Increase))
		}
	}
	row.Limit = strings.Join(limits, ", ")
	t.rows = append(t.rows, row)
}

// occupancy needs the block size beside the compiler's figures.
func (t *resourceTable) occupancy(bound *quantity.Bound[quantity.Count], arch string) {
	blocks, limit, ok := occupancyOf(t.candidate, arch)
	if !ok {
		if bound != nil && !t.imported {
			t.missing = append(t.missing, "blocks per SM (needs registers, block size and a known architecture)")
		}
		return
	}
	row := ResourceRow{Name: "blocks per SM", Candidate: float(&blocks), Status: NotRun}
	if base, _, ok := occupancyOf(t.baseline, arch); ok {
		row.Baseline = float(&base)
	}
	if bound != nil {
		row.Limit, row.Status = bound.String(), Passed
		if !bound.Holds(float64(blocks)) {
			row.Status = Failed
			t.failures = append(t.failures, fmt.Sprintf("%s (asked %s; limited by %s)", blocksPerSM(blocks), bound, limit))
			t.toPass = append(t.toPass, fmt.Sprintf("use less of %s, until the SM holds %s blocks", limit, bound))
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

// headline names the figures that people ask for first.
func (t *resourceTable) headline() string {
	var parts []string
	spills := 0
	for _, row := range t.rows {
		n := int(*row.Candidate)
		name, _, _ := strings.Cut(row.Name, " of ")
		switch name {
		case "registers":
			parts = append(parts, fmt.Sprintf("%d registers", n))
		case "shared memory":
			parts = append(parts, fmt.Sprintf("%.1f KiB shared memory", float64(n)/1024))
		case "stack", "code size":
			if t.candidate.Registers == nil {
				parts = append(parts, fmt.Sprintf("%s %s", quantity.Bytes(n), row.Name))
			}
		case "spill stores", "spill loads":
			spills += n
		case "blocks per SM":
			parts = append(parts, blocksPerSM(n))
		}
	}
	if t.candidate.SpillStores != nil {
		parts = append(parts, fmt.Sprintf("%d B spilled", spills))
	}
	return strings.Join(parts, ", ") + "; within budget"
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func blocksPerSM(n int) string {
	if n == 1 {
		return "1 block per SM"
	}
	return fmt.Sprintf("%d blocks per SM", n)
}
