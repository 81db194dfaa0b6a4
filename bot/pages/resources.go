package pages

import (
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// A ResourceTable shows what the compiler reports: a row for each variant, a column for each resource.
type ResourceTable struct {
	Named  bool // the rows have names
	Names  []string
	Limits []string // of the policy, by resource
	Rows   []ResourceRow
}

// A ResourceRow is a variant, or a kernel of one that launches several.
type ResourceRow struct {
	Variant string
	Cells   []ResourceCell // by resource
}

// A ResourceCell is what the candidate needs, drawn against its limit.
type ResourceCell struct {
	Text   string
	Before string // of the baseline, if it differs
	Fill   template.HTML
	Class  string
}

// resourceTable returns nil if the compiler reported nothing.
func resourceTable(v *gates.Verdict) *ResourceTable {
	t := &ResourceTable{}
	for _, r := range v.Resources {
		if none := func(x *float64) bool { return x == nil || *x == 0 }; none(r.Baseline) && none(r.Candidate) && r.Status != gates.Failed {
			continue
		}
		name, variant := r.Name, ""
		if at := strings.LastIndex(name, " of "); at >= 0 {
			name, variant = name[:at], name[at+len(" of "):]
		}
		if entry, rest, ok := strings.Cut(name, ": "); ok {
			name, variant = rest, strings.TrimSpace(variant+" "+entry)
		}
		column := slices.Index(t.Names, name)
		if column < 0 {
			column, t.Names, t.Limits = len(t.Names), append(t.Names, name), append(t.Limits, "")
		}
		if r.Limit != "" {
			t.Limits[column] = number.PlainCondition(r.Limit)
		}
		row := slices.IndexFunc(t.Rows, func(r ResourceRow) bool { return r.Variant == variant })
		if row < 0 {
			row, t.Rows = len(t.Rows), append(t.Rows, ResourceRow{Variant: variant})
		}
		t.Named = t.Named || variant != ""
		cells := &t.Rows[row].Cells
		for len(*cells) <= column {
			*cells = append(*cells, ResourceCell{})
		}
		(*cells)[column] = resourceCell(r)
	}
	for i := range t.Rows {
		for len(t.Rows[i].Cells) < len(t.Names) {
			t.Rows[i].Cells = append(t.Rows[i].Cells, ResourceCell{})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func resourceCell(r gates.ResourceRow) ResourceCell {
	cell := ResourceCell{Text: figure(r.Candidate, r.Unit), Class: statusOf(r.Status).Class}
	if r.Baseline != nil && (r.Candidate == nil || *r.Baseline != *r.Candidate) {
		cell.Before = figure(r.Baseline, r.Unit)
	}
	if most, ok := mostOf(r.Limit); ok && most > 0 && r.Candidate != nil {
		cell.Fill = picture(chart.Fill(*r.Candidate/most, cell.Class))
	}
	return cell
}

var mostPattern = regexp.MustCompile(`^(?:≤|<=?) *([0-9.]+)(B|KiB|MiB)?(?:,|$)`)

// mostOf returns the upper bound that a limit sets, in bytes where it has a unit.
func mostOf(limit string) (float64, bool) {
	m := mostPattern.FindStringSubmatch(limit)
	if m == nil {
		return 0, false
	}
	value, err := strconv.ParseFloat(m[1], 64)
	return value * map[string]float64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[m[2]], err == nil
}
