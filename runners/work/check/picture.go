package check

import (
	"fmt"
	"strings"
)

// A matrix is an output as rows of its last axis. Mistakes follow the tiles of a kernel, and those
// lie in one row or in several.
type matrix struct{ rows, columns int }

func newMatrix(shape []int, elements int) matrix {
	if len(shape) == 0 || shape[len(shape)-1] == 0 {
		return matrix{1, elements}
	}
	columns := shape[len(shape)-1]
	return matrix{elements / columns, columns}
}

// where describes where the bad elements lie.
func (m matrix) where(bad []element) string {
	top, bottom, left, right := m.rows, -1, m.columns, -1
	for _, e := range bad {
		row, column := e.index/m.columns, e.index%m.columns
		top, bottom = min(top, row), max(bottom, row)
		left, right = min(left, column), max(right, column)
	}
	area := (bottom - top + 1) * (right - left + 1)
	allRows, allColumns := top == 0 && bottom == m.rows-1, left == 0 && right == m.columns-1
	switch dense := 2*len(bad) >= area; {
	case len(bad) == m.rows*m.columns:
		return "all of them"
	case len(bad) == 1:
		return "a single one"
	case !dense:
		if step := m.stride(bad); step > 1 {
			return fmt.Sprintf("every %s column, from %d on", ordinal(step), left)
		}
		return "scattered"
	case allRows && allColumns:
		return "most of them"
	case allColumns && bottom == m.rows-1:
		return fmt.Sprintf("a tail: %s of %d", span("row", top, bottom), m.rows)
	case allColumns && top == 0:
		return fmt.Sprintf("a head: %s of %d", span("row", top, bottom), m.rows)
	case right == m.columns-1 && (allRows || top == bottom):
		return fmt.Sprintf("a tail: %s of %d%s", span("column", left, right), m.columns, m.within(top, bottom))
	case left == 0 && (allRows || top == bottom):
		return fmt.Sprintf("a head: %s of %d%s", span("column", left, right), m.columns, m.within(top, bottom))
	}
	return fmt.Sprintf("a tile: %s of %d, %s of %d", span("row", top, bottom), m.rows, span("column", left, right), m.columns)
}

func (m matrix) within(top, bottom int) string {
	switch {
	case m.rows == 1:
		return ""
	case top == bottom:
		return fmt.Sprintf(", in row %d", top)
	}
	return ", in every row"
}

func span(what string, from, to int) string {
	if from == to {
		return fmt.Sprintf("%s %d", what, from)
	}
	return fmt.Sprintf("%ss %d to %d", what, from, to)
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// stride returns the largest step from 2 to 64 that all bad columns follow, or 1 if there is none.
func (m matrix) stride(bad []element) int {
	for step := min(64, m.columns-1); step > 1; step-- {
		first, kept := bad[0].index%m.columns%step, true
		for _, e := range bad {
			kept = kept && e.index%m.columns%step == first
		}
		if kept {
			return step
		}
	}
	return 1
}

// The largest picture, in characters.
const (
	pictureRows    = 12
	pictureColumns = 64
)

// picture returns a map of the output: a character stands for one element or for a block of
// elements.
func (m matrix) picture(bad []element) string {
	if m.rows == 0 || m.columns == 0 {
		return ""
	}
	high, wide := ceildiv(m.rows, pictureRows), ceildiv(m.columns, pictureColumns)
	rows, columns := ceildiv(m.rows, high), ceildiv(m.columns, wide)
	count := make([]int, rows*columns)
	for _, e := range bad {
		row, column := e.index/m.columns, e.index%m.columns
		count[row/high*columns+column/wide]++
	}
	var b strings.Builder
	for row := range rows {
		fmt.Fprintf(&b, "  %6d │", row*high)
		for column := range columns {
			cells := min(high, m.rows-row*high) * min(wide, m.columns-column*wide)
			switch n := count[row*columns+column]; {
			case n == 0:
				b.WriteString("·")
			case n == cells:
				b.WriteString("█")
			default:
				b.WriteString("▒")
			}
		}
		b.WriteString("│\n")
	}
	fmt.Fprintf(&b, "  %d × %d elements, %s: · right, █ bad", m.rows, m.columns, each(high, wide))
	if high*wide > 1 {
		b.WriteString(", ▒ some of them bad")
	}
	b.WriteString("\n")
	return b.String()
}

func each(high, wide int) string {
	if high*wide == 1 {
		return "one a character"
	}
	return fmt.Sprintf("%d × %d a character", high, wide)
}

func ceildiv(a, b int) int { return (a + b - 1) / b }
