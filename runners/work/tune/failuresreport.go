package tune

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/report"
)

// OfKernel returns the failures of a kernel. For each machine code on each device, it returns only the last
// failure.
func OfKernel(all []Failure, kernel string) []Failure {
	var out []Failure
	at := map[[2]string]int{}
	for _, f := range all {
		if f.Kernel != kernel {
			continue
		}
		key := [2]string{f.Device, f.Same}
		if i, known := at[key]; known {
			out[i] = f
			continue
		}
		at[key] = len(out)
		out = append(out, f)
	}
	return out
}

const failuresTitle = "Failed candidates of searches"

// FailuresText is a table of failures for a terminal; "" if there are none.
func FailuresText(all []Failure, width int) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (a search does not run them again; --retry-failed does):\n\n", failuresTitle)
	writeTable(&b, failureRows(all), max(width, 100))
	return b.String()
}

// FailuresMarkdown is the same table in Markdown.
func FailuresMarkdown(all []Failure) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\nA search does not run them again; `kernelgate tune --retry-failed` does.\n\n", failuresTitle)
	for i, row := range failureRows(all) {
		cells := make([]string, len(row))
		for k, cell := range row {
			cells[k] = report.Escape(cell)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			b.WriteString("| --- | --- | --- | --- | --- |\n")
		}
	}
	return b.String()
}

func failureRows(all []Failure) [][]string {
	rows := [][]string{{"candidate", "device", "machine code", "gate", "why"}}
	for _, f := range all {
		rows = append(rows, []string{report.Plain(f.Name), report.Plain(f.Device), report.Plain(f.Same[:min(len(f.Same), 12)]), report.Plain(string(f.Refusal.Gate)), report.Plain(f.Refusal.Text)})
	}
	return rows
}
