package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

const (
	rowsShown  = 6
	shapeRunes = 40 // of a shape's name
)

// speedDecides tells whether the verdict hangs on the shapes' speed. Where it hangs on
// something else, or on the runner, green rows at the top would contradict it.
func speedDecides(v *gates.Verdict) bool {
	switch v.Reason {
	case "", gates.ReasonTooSlow, gates.ReasonRegression, gates.ReasonInconclusive:
		return v.Outcome == gates.Pass || v.Outcome == gates.Defer
	}
	return false
}

// speedRows is one row for each shape; where there are many, those that hold what is
// asked of them are hidden first.
func speedRows(v *gates.Verdict) (shown, hidden []line) {
	drawn := bars(v.Comparisons)
	rows := make([]line, len(v.Comparisons))
	order := make([]int, len(rows))
	for i, c := range v.Comparisons {
		rows[i], order[i] = speedRow(c, drawn[i]), i
	}
	if !speedDecides(v) {
		return nil, rows
	}
	slices.SortStableFunc(order, func(a, b int) int { return urgency(v.Comparisons[b]) - urgency(v.Comparisons[a]) })
	first := order[:min(len(order), rowsShown)]
	for i := range rows {
		if slices.Contains(first, i) {
			shown = append(shown, rows[i])
		} else {
			hidden = append(hidden, rows[i])
		}
	}
	if len(hidden) > 0 {
		missed := 0
		for _, i := range order[len(first):] {
			if v.Comparisons[i].Status != gates.Passed {
				missed++
			}
		}
		more := line{mark(signPass), text(fmt.Sprintf(" %s more: as asked.", plural(len(hidden), "shape")))}
		if missed > 0 {
			more = line{mark(signNone), text(fmt.Sprintf(" %s more, %d of them not as asked.", plural(len(hidden), "shape"), missed))}
		}
		shown = append(shown, more)
	}
	return shown, hidden
}

func urgency(c gates.Comparison) int {
	switch {
	case c.Status == gates.Failed:
		return 3
	case c.Status == gates.Open:
		return 2
	case c.Role == gates.RoleTarget:
		return 1
	}
	return 0
}

// speedRow is a shape's bar, its name, and its speedup against what is asked.
func speedRow(c gates.Comparison, bar string) line {
	l := line{mark(signOfShape(c)), text(" ")}
	if bar != "" {
		l = append(l, inline{style: code, text: bar}, text(" "))
	}
	l = append(l, bold(Clip(orDash(clean(c.Label())), shapeRunes)), text(" "))
	goal := goalFigures(c.Goal)
	switch {
	case measured(c):
		l = append(l, text(plainText(estimate(c.Speedup, goal.shares))))
	case c.Candidate != nil: // of a new kernel
		l = append(l, text(micros(c.Candidate.P50, goal.micros...)+string(nbsp)+"µs"))
	case c.Same:
		l = append(l, text("the same machine code"))
	default:
		l = append(l, text("not measured"))
	}
	if asked := askedWords(c.Goal); asked != "" {
		l = append(l, text(" ┆"+string(nbsp)+"goal"+string(nbsp)+asked))
	}
	if c.Secret {
		l = append(l, text(" ┆ drawn for this run"))
	}
	return l
}

// askedWords is a goal beside a speedup, which need not be named.
func askedWords(goal string) string {
	words := goalWords(goal)
	if words == dash {
		return ""
	}
	if rest, ok := strings.CutPrefix(words, "speedup "); ok && !strings.Contains(rest, " and ") {
		words = rest
	}
	return Clip(clean(words), 80)
}

// signOfShape tells what was lost, which is wrong, from what is not gained yet.
func signOfShape(c gates.Comparison) sign {
	if c.Status == gates.Failed && c.Role == gates.RoleTarget {
		return signDefer
	}
	return signOf(c.Status)
}
