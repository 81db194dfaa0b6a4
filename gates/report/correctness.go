package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// correctness shows failed cases one by one, and passed cases summed up by shape.
func correctness(v *gates.Verdict) []block {
	if len(v.Correctness) == 0 {
		return nil
	}
	determinism := unanimous(v.Correctness, func(r gates.CaseRow) *bool { return r.Deterministic })
	parity := unanimous(v.Correctness, func(r gates.CaseRow) *bool { return r.BitParity })
	summed := byShape(v.Correctness)
	shapes := shapesOf(summed, func(r gates.CaseRow) string { return r.Dims })
	var rows [][]line
	for _, r := range summed {
		// A property of all rows is stated once, below the table.
		if determinism != nil {
			r.Deterministic = nil
		}
		if parity != nil {
			r.BitParity = nil
		}
		rows = append(rows, caseRow(shapes, r))
	}
	blocks := []block{newTable([]column{
		shapes.column(),
		{title: "inputs", optional: true, wrap: true},
		{title: "passed", right: true},
		{title: "max |err|", right: true, optional: true},
		{title: "mean |err|", right: true, optional: true, spare: 2},
		{title: "norm error", right: true, optional: true},
		{title: "bad", right: true, optional: true, spare: 1},
		{title: "vs unquantised", right: true, optional: true, spare: 3},
		{title: "notes", optional: true, wrap: true},
	}, rows)}
	below := casesWords(v.Correctness, determinism, parity)
	if len(summed) < len(v.Correctness) {
		below = strings.TrimSpace("Each row sums up all cases of a shape, and shows the worst figures among them. " + below)
	}
	if below != "" {
		blocks = append(blocks, paragraph{cell(below)})
	}
	return blocks
}

// byShape makes one row of all that passed on a shape, with the worst of their figures.
func byShape(all []gates.CaseRow) []gates.CaseRow {
	type key struct {
		shape, dims string
		secret      bool
	}
	var rows []gates.CaseRow
	at, kinds := map[key]int{}, map[key]int{}
	for _, r := range all {
		k := key{r.Shape, r.Dims, r.Secret}
		i, known := at[k]
		if r.Passed < r.Total || r.Total <= 0 || r.Problem != "" {
			rows = append(rows, r)
			continue
		}
		if kinds[k]++; !known {
			at[k] = len(rows)
			rows = append(rows, r)
			continue
		}
		sum := &rows[i]
		sum.Distribution = fmt.Sprintf("%d kinds", kinds[k])
		sum.Passed, sum.Total = sum.Passed+r.Passed, sum.Total+r.Total
		sum.MaxAbs, sum.MeanAbs = max(sum.MaxAbs, r.MaxAbs), max(sum.MeanAbs, r.MeanAbs)
		sum.Norm, sum.BadShare = max(sum.Norm, r.Norm), max(sum.BadShare, r.BadShare)
		if r.EndToEnd != nil && (sum.EndToEnd == nil || *r.EndToEnd > *sum.EndToEnd) {
			sum.EndToEnd = r.EndToEnd
		}
		sum.Deterministic, sum.BitParity = both(sum.Deterministic, r.Deterministic), both(sum.BitParity, r.BitParity)
	}
	return rows
}

// both is true where both rows are, and unknown where one of them is.
func both(a, b *bool) *bool {
	if a == nil || b == nil {
		return nil
	}
	return new(*a && *b)
}

// unanimous is the value that all rows have, or nil where they differ or lack it.
func unanimous(rows []gates.CaseRow, get func(gates.CaseRow) *bool) *bool {
	first := get(rows[0])
	for _, r := range rows {
		if next := get(r); first == nil || next == nil || *next != *first {
			return nil
		}
	}
	return first
}

func casesWords(rows []gates.CaseRow, determinism, parity *bool) string {
	var said []string
	say := func(fact *bool, yes, no string) {
		switch {
		case fact == nil:
		case *fact:
			said = append(said, yes)
		default:
			said = append(said, no)
		}
	}
	say(determinism, "Two launches on the same input agree bit for bit in every case.", "Two launches on the same input differ.")
	say(parity, "Every output is bit-identical to the baseline's.", "The outputs are not bit-identical to the baseline's.")
	if parity == nil && slices.ContainsFunc(rows, func(r gates.CaseRow) bool { return r.BitParity != nil }) {
		said = append(said, "“Bit-identical” compares with the baseline's output.")
	}
	if slices.ContainsFunc(rows, func(r gates.CaseRow) bool { return r.Existing > 0 }) {
		said = append(said, "“As before”: the baseline fails on the same inputs at least as badly.")
	}
	if slices.ContainsFunc(rows, compared) {
		said = append(said, "Errors are against the reference: |err| of an element, and the norm error of the whole output, relative to the norm of the reference. “Bad” is the share of elements beyond the manifest's tolerance.")
	}
	if slices.ContainsFunc(rows, func(r gates.CaseRow) bool { return r.EndToEnd != nil }) {
		said = append(said, "“vs unquantised” is max |err| against the reference on the inputs before quantisation.")
	}
	if slices.ContainsFunc(rows, func(r gates.CaseRow) bool { return r.Secret }) {
		said = append(said, "Secret cases are random and different in every run, so no kernel can be written for them.")
	}
	return strings.Join(said, " ")
}

func caseRow(shapes shapeColumn, r gates.CaseRow) []line {
	inputs := cell(orDash(r.Distribution))
	if r.Secret {
		inputs = append(inputs, text(" "), bold("secret"))
	}
	row := []line{shapes.cell(r.Shape, r.Dims), inputs, passedOf(r), cell(dash), cell(dash), cell(dash), cell(dash), cell(dash), caseNotes(r)}
	if compared(r) {
		row[3], row[4] = cell(number.Significant(r.MaxAbs, 4)), cell(number.Significant(r.MeanAbs, 3))
		row[5], row[6] = cell(normShare(r.Norm)), cell(number.Share(r.BadShare))
		if m := boundMissed.FindStringSubmatch(r.Problem); m != nil {
			column := map[string]int{"max |err|": 3, "mean |err|": 4, "norm error": 5}[m[2]]
			row[column] = append(row[column], text(" ("+number.Condition(m[4])+")"))
		}
	}
	if r.EndToEnd != nil {
		row[7] = cell(number.Significant(*r.EndToEnd, 4))
	}
	return row
}

// boundMissed is the problem of a row whose error is beyond its bound. The error's column shows the worst of the row's cases, and the
// problem the first.
var boundMissed = regexp.MustCompile(`^seed (\d+): (norm error|max \|err\||mean \|err\|) (\S+) \(asked ([^)]*)\)$`)

// normShare is the norm of an error relative to that of the reference, as sentences have it: 43.7 %.
func normShare(x float64) string { return number.Significant(100*x, 3) + string(nbsp) + "%" }

func passedOf(r gates.CaseRow) line {
	s := signPass
	switch {
	case r.Total <= 0:
		s = signNone
	case r.Passed+r.Existing < r.Total:
		s = signFail
	case r.Existing > 0:
		s = signInform
	}
	return line{mark(s), text(fmt.Sprintf("%c%d/%d", nbsp, r.Passed, r.Total))}
}

// compared reports whether a row has figures: a failed case without any error never got as far as a
// comparison.
func compared(r gates.CaseRow) bool {
	return r.Total > 0 && (r.Passed > 0 || r.MaxAbs != 0 || r.MeanAbs != 0 || r.Norm != 0 || r.BadShare != 0)
}

func caseNotes(r gates.CaseRow) line {
	var l line
	add := func(more ...inline) {
		if l != nil {
			l = append(l, text("; "))
		}
		l = append(l, more...)
	}
	switch m := boundMissed.FindStringSubmatch(r.Problem); {
	case r.Problem == "" || m != nil && r.Total == 1: // its column has the error and the bound
	case m != nil:
		add(text("first: seed " + m[1] + ", " + InNotation(m[3])))
	default:
		add(prose(InNotation(r.Problem))...)
	}
	switch {
	case r.Existing <= 0:
	case r.Existing == r.Total-r.Passed:
		add(bold("as before"))
	default:
		add(bold(fmt.Sprintf("%d of them as before", r.Existing)))
	}
	if r.Deterministic != nil {
		if *r.Deterministic {
			add(text("deterministic"))
		} else {
			add(bold("not deterministic"))
		}
	}
	if r.BitParity != nil {
		if *r.BitParity {
			add(text("bit-identical"))
		} else {
			add(text("not bit-identical"))
		}
	}
	if l == nil {
		return cell(dash)
	}
	return l
}
