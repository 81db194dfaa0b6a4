package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// A historyRow is one variant's figures: those of a step's candidate, or of the baseline that everything began with.
type historyRow struct {
	name, against     line
	times             []line // by shape
	bar               line
	speedup, interval string
	factor            string
	registers, shared line
	step              Step
	first             bool
}

// historyTable is the table for Markdown, which scrolls where it is wide.
func historyTable(steps []Step) block {
	shapes, rows := historyRows(steps)
	columns := []column{{title: "variant"}, {title: "against"}}
	for _, shape := range shapes {
		columns = append(columns, column{title: shape, right: true})
	}
	columns = append(columns, column{title: "┆ goal", optional: true}, column{title: "speedup"}, column{title: "factor", right: true}, column{title: "registers", right: true},
		column{title: "shared memory", right: true}, column{title: "verdict"})
	var cells [][]line
	for _, r := range rows {
		speedup, verdict := r.speedup, verdictCell(r.step.Verdict)
		if r.interval != dash {
			speedup += " " + r.interval
		}
		if r.first {
			verdict = cell("where it began")
		}
		cells = append(cells, slices.Concat([]line{r.name, r.against}, r.times, []line{r.bar, cell(speedup), cell(r.factor), r.registers, r.shared, verdict}))
	}
	return newTable(columns, cells)
}

// terminalHistoryTable is the table for a terminal, a row a line. Where it has too few columns the resources go first, then the
// bars and intervals, then the shapes that no goal asks to gain.
func terminalHistoryTable(steps []Step) block {
	shapes, rows := historyRows(steps)
	columns := []column{{title: "variant"}, {title: "against", spare: 1}}
	for i, shape := range shapes {
		c := column{title: shape, right: true, spare: 2 + i}
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Target != nil && s.Target.Shape == shape }) {
			c.spare = 0
		}
		columns = append(columns, c)
	}
	spare := 2 + len(shapes)
	columns = append(columns, column{title: "┆ goal", optional: true, spare: spare + 1}, column{title: "speedup", right: true}, column{title: "interval", optional: true, spare: spare},
		column{title: "factor", right: true}, column{title: "registers", right: true, optional: true, spare: spare + 2}, column{title: "shared memory", right: true, optional: true, spare: spare + 3}, column{title: "verdict"})
	var cells [][]line
	for _, r := range rows {
		cells = append(cells, slices.Concat([]line{r.name, r.against}, r.times, []line{r.bar, cell(r.speedup), cell(r.interval), cell(r.factor), r.registers, r.shared, r.shortVerdict()}))
	}
	return newTable(columns, cells)
}

// shortVerdict is the mark and the reason, which implies DEFER.
func (r historyRow) shortVerdict() line {
	v := r.step.Verdict
	if r.first {
		return cell("first")
	}
	word := Word(v)
	if reason := Plain(string(v.Reason)); reason != "" && v.Outcome == gates.Defer {
		word = reason
	}
	return line{mark(signFor(v)), text(" " + word)}
}

// historyRows are the rows of both tables, and the shapes that any step was timed on.
func historyRows(steps []Step) (shapes []string, rows []historyRow) {
	targets := make([]gates.Comparison, len(steps))
	for i, s := range steps {
		if s.Target != nil {
			targets[i] = *s.Target
		}
		for _, c := range s.Verdict.Judged() {
			if !c.Secret && !slices.Contains(shapes, c.Shape) {
				shapes = append(shapes, c.Shape)
			}
		}
	}
	drawn := bars(targets)
	for i, s := range steps {
		if s.First {
			rows = append(rows, s.row(shapes, true, ""))
		}
		rows = append(rows, s.row(shapes, false, drawn[i]))
	}
	return shapes, rows
}

func (s Step) row(shapes []string, first bool, bar string) historyRow {
	r := historyRow{name: codeCell(s.After), against: codeCell(s.Before), bar: cell(dash), speedup: dash, interval: dash, factor: Factor(s.Factor), step: s, first: first}
	if first {
		r.name, r.against, r.factor = codeCell(s.Before), cell(dash), Factor(1)
	} else if s.Target != nil {
		r.speedup, r.interval = s.Target.Speedup.Gain(), gainInterval(s.Target.Speedup)
	}
	if bar != "" {
		r.bar = line{{style: code, text: bar}}
	}
	for _, shape := range shapes {
		time := dash
		if c := s.Verdict.ComparisonOf(shape); c != nil {
			switch {
			case !first:
				time = number.Time(c.CandidateTime())
			case c.Baseline != nil:
				time = number.Time(c.Baseline.P50)
			}
		}
		r.times = append(r.times, cell(time))
	}
	r.registers, r.shared = s.resource("registers", first), s.resource("shared memory", first)
	return r
}

func (s Step) resource(name string, first bool) line {
	for _, r := range s.Verdict.Resources {
		// Of a choice, those of the variant that stands first.
		if of, _, _ := strings.Cut(r.Name, " of "); of != name {
			continue
		}
		if first {
			return cell(amountOf(r.Baseline, r.Unit))
		}
		return cell(amountOf(r.Candidate, r.Unit))
	}
	return cell(dash)
}
