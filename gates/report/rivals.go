package report

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// rivals compares the candidate with further implementations. Their times decide nothing, which the
// heading says.
func rivals(v *gates.Verdict) []block {
	if len(v.Rivals) == 0 {
		return nil
	}
	known := map[string]gates.Comparison{}
	for _, c := range v.Comparisons {
		known[c.Shape] = c
	}
	timed := slices.DeleteFunc(slices.Clone(v.Rivals), func(r gates.Rival) bool { return r.Failure != "" })
	shapes := shapesOf(timed, func(r gates.Rival) string { return known[r.Shape].Dims })
	var rows [][]line
	var failures []line
	add := func(r gates.Rival) {
		row := []line{shapes.cell(r.Shape, known[r.Shape].Dims), codeCell(r.Name), cell(dash), cell(number.Time(r.Stats.P50)), cell(dash)}
		if ours := known[r.Shape].CandidateTime(); ours > 0 {
			row[2] = cell(number.Time(ours))
			if r.Stats.P50 > 0 {
				row[4] = cell(number.Speedup(r.Stats.P50/ours - 1))
			}
		}
		rows = append(rows, row)
	}
	// Ordered by shape, so that rivals can be compared with each other.
	done := map[string]bool{}
	for _, r := range v.Rivals {
		switch {
		case r.Failure != "" && r.Shape == "":
			failures = append(failures, line{mono(orDash(r.Name)), text(" could not be timed: " + r.Failure)})
		case r.Failure != "":
			failures = append(failures, line{mono(orDash(r.Name)), text(" could not be timed on " + r.Shape + ": " + r.Failure)})
		case !done[r.Shape]:
			done[r.Shape] = true
			for _, other := range timed {
				if other.Shape == r.Shape {
					add(other)
				}
			}
		}
	}
	var blocks []block
	if len(rows) > 0 {
		blocks = append(blocks, newTable([]column{
			shapes.column(),
			{title: "rival"},
			{title: "candidate", right: true},
			{title: "rival's time", right: true},
			{title: "candidate over rival", right: true},
		}, rows))
	}
	if len(failures) > 0 {
		blocks = append(blocks, bullets{failures})
	}
	return append([]block{heading{4, cell("Rivals (for information)")}}, blocks...)
}
