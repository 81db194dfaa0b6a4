package report

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
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

// resourceLine is the resources before and after against their limits: a row for each variant of a choice, or for each kernel of a
// launch, where there are several.
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
	heads := []column{{title: partsName(v), optional: true, wrap: true}}
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
	t := newTable(heads, rows)
	if len(t.columns) == 0 {
		return nil
	}
	blocks := []block{t}
	if hidden := parts[len(rows):]; len(hidden) > 0 {
		over := 0
		for _, part := range hidden {
			over += min(overs(of[part]), 1)
		}
		more := fmt.Sprintf("%s more, within their limits: see the details.", number.Plural(len(hidden), partsName(v)))
		if over > 0 {
			more = fmt.Sprintf("%s more, %d of which are over a limit: see the details.", number.Plural(len(hidden), partsName(v)), over)
		}
		blocks = append(blocks, paragraph{cell(more)})
	}
	return blocks
}

// partsName is what the rows of the resources are about.
func partsName(v *gates.Verdict) string {
	if n := len(v.Builds); n > 0 && len(v.Builds[n-1].Parts) > 0 {
		return "variant"
	}
	return "kernel"
}

func overs(rows []gates.ResourceRow) (n int) {
	for _, r := range rows {
		if r.Status == gates.Failed {
			n++
		}
	}
	return n
}

// cell is a figure before and after, with its limit and how much of it is used.
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
	for _, r := range found {
		if r.Status == gates.Failed {
			l := cell(fromTo(shown.Baseline, shown.Candidate, shown.Unit))
			return append(line{mark(signFail), text(string(nbsp))}, append(l, text(" (limit "+number.Condition(r.Limit)+")"))...)
		}
	}
	return cell(ofLimit(shown))
}

// mostText is the upper limit of a resource.
var mostText = regexp.MustCompile(`≤\s*([0-9.]+)\s*(B|KiB|MiB)?(?:$|[,\s])`)

// ofLimit is a figure before and after, of its limit: "16.5 → 226 of 227 KiB ▰▰▰▰▰". A limit of nothing is not shown: there is
// nothing to use up.
func ofLimit(r gates.ResourceRow) string {
	text := fromTo(r.Baseline, r.Candidate, r.Unit)
	m := mostText.FindStringSubmatch(r.Limit)
	if m == nil || r.Candidate == nil {
		return text
	}
	most, err := strconv.ParseFloat(m[1], 64)
	switch m[2] {
	case "KiB":
		most *= 1 << 10
	case "MiB":
		most *= 1 << 20
	}
	if err != nil || most <= 0 {
		return text
	}
	limit := amount(most, r.Unit)
	if _, unit, ok := strings.Cut(limit, string(nbsp)); ok {
		text = strings.TrimSuffix(text, string(nbsp)+unit) // once is enough
	}
	return text + string(nbsp) + "of" + string(nbsp) + limit + " " + gauge(*r.Candidate/most)
}

// gaugeCells is how long a gauge is.
const gaugeCells = 5

// gauge draws a share. It is full from 95 % on: what is left is nothing to plan with.
func gauge(share float64) string {
	full := min(max(int(share*gaugeCells+0.25), 0), gaugeCells)
	return strings.Repeat("▰", full) + strings.Repeat("▱", gaugeCells-full)
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
