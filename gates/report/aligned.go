package report

import (
	"strings"
	"unicode/utf8"
)

// Aligned is rows of plain text as lines with aligned columns, for terminals and files. All rows have
// the cells of the first.
func Aligned(rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+gap))
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}
