package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// provenance is everything that it takes to reproduce the figures.
func provenance(v *gates.Verdict) []block {
	var inner []block
	if rows := runRows(v); rows != nil {
		inner = append(inner, newTable([]column{{title: "run"}, {title: "value", wrap: true}}, rows))
	}
	if rows := commitRows(v); rows != nil {
		inner = append(inner, sidesTable(rows))
	}
	head := "Provenance"
	if command := v.Provenance.Command; strings.TrimSpace(command) != "" {
		head += " and how to reproduce"
		inner = append(inner, paragraph{cell("To reproduce:")}, listing{command})
	}
	if inner == nil {
		return nil
	}
	return append([]block{heading{4, cell(head)}}, inner...)
}

// runRows is the rows that both sides share.
func runRows(v *gates.Verdict) [][]line {
	var rows [][]line
	add := func(name string, value line) {
		if !value.blank() {
			rows = append(rows, []line{cell(name), value})
		}
	}
	p, d := v.Provenance, v.Device
	if !p.Time.IsZero() {
		add("time", codeCell(p.Time.UTC().Format("2006-01-02 15:04:05 UTC")))
	}
	add("repository", line{mono(p.Repository)})
	add("host", line{mono(p.Host)})
	add("device", cell(deviceText(d)))
	add("driver", line{mono(d.Driver)})
	add("limits", cell(limitsText(d)))
	add("clocks", cell(counts(d.ClockMHz, "%s %d\u00a0MHz", ", ")))
	add("kernelgate", line{mono(p.Program)})
	for _, tool := range slices.Sorted(maps.Keys(p.Tools)) {
		add(tool, line{mono(p.Tools[tool])})
	}
	if v.Policy != "" || p.Policy != "" {
		add("policy", line{mono(v.Policy), text(" "), mono(Short(p.Policy))})
	}
	add("manifest", line{mono(Short(p.Manifest))})
	if p.Implementation != "" {
		add("the head's manifest", line{mono(Short(p.Implementation))})
	}
	return rows
}

func deviceText(d gates.Device) string {
	parts := []string{d.Name, d.Arch}
	if d.Units > 0 {
		unit := "SM"
		if d.Kind == gates.DeviceCPU {
			unit = "core"
		}
		parts = append(parts, number.Plural(d.Units, unit))
	}
	if d.L2Bytes > 0 {
		parts = append(parts, amount(float64(d.L2Bytes), "B")+" L2")
	}
	parts = slices.DeleteFunc(append(parts, d.UUID), func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(parts, ", ")
}

func limitsText(d gates.Device) string {
	var parts []string
	for _, format := range slices.Sorted(maps.Keys(d.Peak)) {
		parts = append(parts, number.Significant(d.Peak[format]/1e12, 4)+string(nbsp)+"TFLOP/s "+format)
	}
	if d.Bandwidth > 0 {
		parts = append(parts, number.Significant(d.Bandwidth/1e9, 4)+string(nbsp)+"GB/s")
	}
	if len(parts) > 0 && d.PeakFrom != "" {
		return strings.Join(parts, ", ") + " (" + d.PeakFrom + ")"
	}
	return strings.Join(parts, ", ")
}

// counts is figures by their names, in their order.
func counts(of map[string]int, format, by string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf(format, name, of[name]))
	}
	return strings.Join(parts, by)
}

func sidesTable(rows [][]line) table {
	return newTable([]column{{title: "side"}, {title: "baseline", wrap: true}, {title: "candidate", wrap: true}}, rows)
}

// commitRows is where the sides come from.
func commitRows(v *gates.Verdict) [][]line {
	return eachSide(v, []sideRow{
		{"commit", func(c gates.Commit, _ gates.Build) line { return commitText(c) }},
		{"branch", func(c gates.Commit, _ gates.Build) line { return codeCell(c.Branch) }},
		{"variant", func(c gates.Commit, b gates.Build) line { return codeCell(cmp.Or(c.Variant, b.Variant)) }},
	})
}

// buildRows is the sources and the results of both builds.
func buildRows(v *gates.Verdict) [][]line {
	return eachSide(v, []sideRow{
		{"source", func(_ gates.Commit, b gates.Build) line { return codeCell(b.Source) }},
		{"serving", func(_ gates.Commit, b gates.Build) line { return cell(b.Chosen()) }},
		{"toggles", func(_ gates.Commit, b gates.Build) line { return codeCell(counts(b.Toggles, "%s=%d", " ")) }},
		{"flags", func(_ gates.Commit, b gates.Build) line { return codeCell(strings.Join(b.Flags, " ")) }},
		{"arch", func(_ gates.Commit, b gates.Build) line { return codeCell(b.Arch) }},
		{"compiler", func(_ gates.Commit, b gates.Build) line { return compilerText(b) }},
		{"machine code", func(_ gates.Commit, b gates.Build) line { return codeCell(Short(b.Code)) }},
		{"build time", func(_ gates.Commit, b gates.Build) line {
			if b.Cached {
				return cell("cached")
			}
			return cell(number.Seconds(b.Seconds))
		}},
	})
}

// A sideRow is a row that differs between the sides.
type sideRow struct {
	name string
	of   func(gates.Commit, gates.Build) line
}

func eachSide(v *gates.Verdict, wanted []sideRow) [][]line {
	var baseline, candidate gates.Build
	switch len(v.Builds) {
	case 1: // a new kernel has no baseline
		candidate = v.Builds[0]
	case 2:
		baseline, candidate = v.Builds[0], v.Builds[1]
	}
	var rows [][]line
	for _, w := range wanted {
		a, b := w.of(v.Provenance.Base, baseline), w.of(v.Provenance.Head, candidate)
		if !a.blank() || !b.blank() {
			rows = append(rows, []line{cell(w.name), a, b})
		}
	}
	return rows
}

func compilerText(b gates.Build) line {
	if b.Digest == "" {
		return cell(orDash(b.Compiler))
	}
	return line{text(orDash(b.Compiler) + " "), mono(Short(b.Digest))}
}

func commitText(c gates.Commit) line {
	if c.SHA == "" {
		if c.Dirty {
			return cell("work tree")
		}
		return cell(dash)
	}
	l := line{mono(Short(c.SHA))}
	if c.Dirty {
		l = append(l, text(", "), bold("with uncommitted changes"))
	}
	return l
}

// Short is enough of a hash to find the whole one.
func Short(hash string) string {
	digits := strings.TrimPrefix(hash, "sha256:")
	return digits[:min(len(digits), 12)]
}
