package doctor

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

var marks = map[Status]string{OK: "✓", Warn: "!", Missing: "✗"}

// Text lists the findings for a terminal, with each remedy below its finding. A remedy stays on one line, so that a
// command in it can be copied.
func Text(findings []Finding) string {
	width := 0
	for _, f := range findings {
		width = max(width, utf8.RuneCountInString(f.Name))
	}
	var b strings.Builder
	for _, f := range findings {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(f.Name))
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%s %s%s  %s", marks[f.Status], f.Name, pad, f.Detail), " "))
		if f.Remedy != "" {
			fmt.Fprintf(&b, "    %s\n", f.Remedy)
		}
	}
	return b.String()
}
