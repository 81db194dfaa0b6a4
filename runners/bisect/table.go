package bisect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// speed is a speed with its bounds, in percent of the good commit's.
func speed(s Step) string {
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*s.Speed, 100*s.Lower, 100*s.Upper)
}

func sorted(steps []Step) []Step {
	return slices.SortedStableFunc(slices.Values(steps), func(a, b Step) int { return cmp.Compare(a.Commit, b.Commit) })
}

// writeTable aligns columns; the first row is the heading.
func writeTable(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
