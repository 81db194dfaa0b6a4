package hindsight

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/report"
)

// Text is the rows for a terminal: the verdicts that would be different, with the reason, the runs
// that would need more evidence, and the summary.
func Text(rows []Row) string {
	var flips, lacking strings.Builder
	for _, r := range rows {
		run := report.Clip(report.Plain(r.Run), maxCell) + ", " + r.Kernel + ": "
		switch {
		case r.Lacks != nil:
			lacking.WriteString(report.Hanging("  ", "    ", run+r.Old.String()+"; lacks "+r.Lacks.String(), columns))
		case r.Flips():
			flips.WriteString(report.Hanging("  ", "    ", run+r.Old.String()+" → "+r.New.String(), columns))
			flips.WriteString(report.Hanging("    ", "    ", why(r), columns))
		}
	}
	var b strings.Builder
	section(&b, "Verdicts that would be different, by the old and the new policy:", flips.String())
	section(&b, "Runs that would need more evidence for the new policy:", lacking.String())
	b.WriteString(report.Hanging("", "", Summarize(rows).String(), columns))
	return b.String()
}

// why is the summary of the verdict that does not pass, by the new policy if that is so.
func why(r Row) string {
	text := r.New.Summary
	if r.Old.Rule != r.New.Rule {
		text = fmt.Sprintf("rule %s, not %s: %s", r.New.Rule, r.Old.Rule, text)
	}
	return report.Clip(report.InNotation(report.Plain(text)), maxReason)
}

const (
	columns            = 80 // of a terminal of the usual width
	maxCell, maxReason = 100, 300
)

// section writes lines with their title; nothing where there are none.
func section(b *strings.Builder, title, lines string) {
	if lines != "" {
		fmt.Fprintf(b, "%s\n\n%s\n", title, lines)
	}
}
