package hindsight

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/report"
)

// Text is the rows for a terminal: the verdicts that would be different, with the reason, the runs
// that would need more evidence, and the summary.
func Text(rows []Row) string {
	var flips, lacking [][]string
	for _, r := range rows {
		run := report.Clip(report.Plain(r.Run), maxCell)
		switch {
		case r.Lacks != nil:
			lacking = append(lacking, []string{run, r.Kernel, r.Old.String(), r.Lacks.String()})
		case r.Flips():
			flips = append(flips, []string{run, r.Kernel, r.Old.String(), r.New.String(), why(r)})
		}
	}
	var b strings.Builder
	section(&b, "Verdicts that would be different:", []string{"run", "kernel", "old policy", "new policy", "because"}, flips)
	section(&b, "Runs that would need more evidence:", []string{"run", "kernel", "old policy", "the new policy lacks"}, lacking)
	b.WriteString(Summarize(rows).String() + "\n")
	return b.String()
}

// why is the summary of the verdict that does not pass, by the new policy if that is so.
func why(r Row) string {
	text := r.New.Summary
	if r.Old.Rule != r.New.Rule {
		text = fmt.Sprintf("rule %s, not %s: %s", r.New.Rule, r.Old.Rule, text)
	}
	return report.Clip(report.Plain(text), maxReason)
}

const maxCell, maxReason = 100, 200

// section writes a table with its title; nothing where there are no rows.
func section(b *strings.Builder, title string, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n\n", title)
	for _, line := range report.Aligned(append([][]string{columns}, rows...)) {
		b.WriteString("  " + line + "\n")
	}
	b.WriteByte('\n')
}
