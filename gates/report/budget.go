package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// resourceRowsShown is how many parts of a build have a visible row of resources.
const resourceRowsShown = 3

// A resourceColumn is one figure of the row of resources.
type resourceColumn struct {
	title string
	names []string // of the verdict's rows, the first that there is
	sum   bool     // of all of them
}

var resourceColumns = []resourceColumn{
	{title: "registers", names: []string{"registers"}},
	{title: "shared memory", names: []string{"shared memory", "static shared memory"}},
	{title: "spills", names: []string{"spill stores", "spill loads"}, sum: true},
	{title: "blocks per SM", names: []string{"blocks per SM"}},
	{title: "code size", names: []string{"code size"}},
}

// resourceLine is the resources before and after in one row; one for each part of a build that has several.
func resourceLine(v *gates.Verdict) []block {
	var parts []string
	of := map[string][]gates.ResourceRow{}
	for _, r := range v.Resources {
		name, part, _ := strings.Cut(r.Name, " of ")
		if _, known := of[part]; !known {
			parts = append(parts, part)
		}
		r.Name = name
		of[part] = append(of[part], r)
	}
	columns := slices.Clone(resourceColumns)
	for _, r := range v.Resources {
		name, _, _ := strings.Cut(r.Name, " of ")
		if r.Status == gates.Failed && !slices.ContainsFunc(columns, func(c resourceColumn) bool { return slices.Contains(c.names, name) }) {
			columns = append(columns, resourceColumn{title: Plain(name), names: []string{name}})
		}
	}
	// A figure over budget is always shown.
	slices.SortStableFunc(parts, func(a, b string) int { return overs(of[b]) - overs(of[a]) })
	heads := []column{{title: "resources", optional: true, wrap: true}}
	for _, c := range columns {
		heads = append(heads, column{title: c.title, optional: true, wrap: true, figure: true})
	}
	var rows [][]line
	for _, part := range parts[:min(len(parts), resourceRowsShown)] {
		row := []line{cell(orDash(Plain(part)))}
		for _, c := range columns {
			row = append(row, c.cell(of[part]))
		}
		rows = append(rows, row)
	}
	if t := newTable(heads, rows); len(t.columns) > 0 {
		return []block{t}
	}
	return nil
}

func overs(rows []gates.ResourceRow) (n int) {
	for _, r := range rows {
		if r.Status == gates.Failed {
			n++
		}
	}
	return n
}

// cell is a figure before and after, with the limit that it exceeds.
func (c resourceColumn) cell(rows []gates.ResourceRow) line {
	var found []gates.ResourceRow
	for _, name := range c.names {
		if i := slices.IndexFunc(rows, func(r gates.ResourceRow) bool { return r.Name == name }); i >= 0 {
			found = append(found, rows[i])
		}
	}
	if len(found) == 0 {
		return cell(dash)
	}
	shown := found[0]
	if c.sum {
		for _, r := range found[1:] {
			shown.Baseline, shown.Candidate = sum(shown.Baseline, r.Baseline), sum(shown.Candidate, r.Candidate)
		}
	}
	l := cell(fromTo(shown.Baseline, shown.Candidate, shown.Unit))
	for _, r := range found {
		if r.Status == gates.Failed {
			return append(line{mark(signFail), text(string(nbsp))}, append(l, text(" (limit "+number.Condition(r.Limit)+")"))...)
		}
	}
	return l
}

func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// fromTo is an amount before and after: "16.5 → 30.2 KiB". Of a new kernel there is the second only.
func fromTo(from, to *float64, unit string) string {
	if from == nil || to == nil {
		return amountOf(to, unit)
	}
	before, after := amountOf(from, unit), amountOf(to, unit)
	if was, of, ok := strings.Cut(before, string(nbsp)); ok && strings.HasSuffix(after, string(nbsp)+of) {
		before = was
	}
	return before + string(nbsp) + "→" + string(nbsp) + after
}
