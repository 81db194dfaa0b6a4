package report

import (
	"slices"
	"strings"

	"github.com/charmbracelet/lipgloss"
)

const (
	gap       = 2  // cells between columns
	narrowest = 24 // a column with longer words is narrowed to this, and breaks them
)

// A grid is a table with its cells already written for a terminal.
type grid struct {
	columns []column
	rows    [][]string
	hidden  []string // titles of columns that were left out
}

// layout is the widths with which the grid fits, leaving out what it may. False
// means that it cannot fit as a table.
func (g *grid) layout(width int) ([]int, bool) {
	for {
		if widths, ok := g.widths(width); ok {
			return widths, true
		}
		drop := -1
		for i, c := range g.columns {
			if c.spare > 0 && (drop < 0 || c.spare > g.columns[drop].spare) {
				drop = i
			}
		}
		if drop < 0 {
			return nil, false
		}
		g.hidden = append(g.hidden, g.columns[drop].title)
		g.columns = slices.Delete(slices.Clone(g.columns), drop, drop+1)
		for r, row := range g.rows {
			g.rows[r] = slices.Delete(slices.Clone(row), drop, drop+1)
		}
	}
}

// widths starts from what every cell would like. Titles are broken over lines
// before cells are; either way the widest gives first, until the sum fits.
func (g *grid) widths(width int) ([]int, bool) {
	n := len(g.columns)
	widths, cells, least := make([]int, n), make([]int, n), make([]int, n)
	for i, c := range g.columns {
		cells[i] = longestWord(c.title)
		least[i] = cells[i]
		for _, row := range g.rows {
			w := lipgloss.Width(row[i])
			cells[i] = max(cells[i], w)
			if c.wrap {
				w = min(longestWord(row[i]), narrowest)
			}
			least[i] = max(least[i], w)
		}
		widths[i] = max(cells[i], lipgloss.Width(c.title))
	}
	room := width - gap*(n-1)
	if width <= 0 || squeeze(widths, cells, room) || squeeze(widths, least, room) {
		return widths, true
	}
	return nil, false
}

// squeeze takes from the widest that is above its least until the sum fits.
func squeeze(widths, least []int, room int) bool {
	total := 0
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// lines writes the grid as aligned columns under a ruled head.
func (g *grid) lines(widths []int) []string {
	titles := make([]string, len(g.columns))
	rules := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.title
		rules[i] = strings.Repeat("─", widths[i])
	}
	out := g.rowLines(titles, widths)
	out = append(out, strings.Join(rules, strings.Repeat(" ", gap)))
	for _, row := range g.rows {
		out = append(out, g.rowLines(row, widths)...)
	}
	return out
}

func (g *grid) rowLines(row []string, widths []int) []string {
	cells := make([][]string, len(row))
	height := 0
	for i, s := range row {
		cells[i] = wrap(s, widths[i])
		height = max(height, len(cells[i]))
	}
	out := make([]string, height)
	for h := range out {
		var b strings.Builder
		for i := range cells {
			s := ""
			if h < len(cells[i]) {
				s = cells[i][h]
			}
			fill := strings.Repeat(" ", max(widths[i]-lipgloss.Width(s), 0))
			if g.columns[i].right {
				s = fill + s
			} else {
				s += fill
			}
			if i > 0 {
				b.WriteString(strings.Repeat(" ", gap))
			}
			b.WriteString(s)
		}
		out[h] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// stacked writes every row as a small list, for a terminal too narrow for a
// table.
func (g *grid) stacked(width int) []string {
	label := 0
	for _, c := range g.columns {
		if c.figure || c.title != g.columns[0].title {
			label = max(label, lipgloss.Width(c.title))
		}
	}
	label = min(label, max(width/3, 8))
	var out []string
	for _, row := range g.rows {
		if !g.columns[0].figure {
			out = append(out, wrap(row[0], width)...)
		}
		for i, c := range g.columns {
			if i == 0 && !c.figure || row[i] == "" || row[i] == dash {
				continue
			}
			names := wrap(c.title, label)
			values := wrap(row[i], max(width-label-gap-2, 1))
			for h := range max(len(names), len(values)) {
				name, value := "", ""
				if h < len(names) {
					name = names[h]
				}
				if h < len(values) {
					value = values[h]
				}
				fill := strings.Repeat(" ", max(label-lipgloss.Width(name), 0)+gap)
				out = append(out, strings.TrimRight("  "+name+fill+value, " "))
			}
		}
	}
	return out
}
