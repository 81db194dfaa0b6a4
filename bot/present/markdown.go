package present

import (
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

const dash = "–"

// joined puts parts that say something one below the other, an empty line
// between: within HTML too, Markdown begins again only after one.
func joined(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, strings.TrimRight(p, "\n")+"\n")
		}
	}
	return strings.Join(said, "\n")
}

// row is one of a table; its cells are Markdown already.
func row(cells ...string) string {
	for i, c := range cells {
		if c == "" {
			cells[i] = dash
		}
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// table holds as many rows as there is room for.
func table(head, rows []string, room int, what string) string {
	if len(rows) == 0 {
		return ""
	}
	rule := strings.Repeat("| --- ", len(head)) + "|"
	return list(append([]string{row(head...), rule}, rows...), room, what)
}

// list is lines as far as there is room, and how many more there are.
func list(lines []string, room int, what string) string {
	var b strings.Builder
	for i, l := range lines {
		if b.Len()+len(l)+1 > room {
			fmt.Fprintf(&b, "\n… and %d more %s.\n", len(lines)-i, what)
			break
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}

// foldOverflow is lines as far as there is room for them in sight, and the others folded.
func foldOverflow(lines []string, room int, what string) string {
	shown, used := 0, 0
	for shown < len(lines) && (shown == 0 || used+len(lines[shown])+1 <= room) {
		used += len(lines[shown]) + 1
		shown++
	}
	text := strings.Join(lines[:shown], "\n") + "\n"
	if rest := lines[shown:]; len(rest) > 0 {
		text = joined(text, details(fmt.Sprintf("%d more %s", len(rest), what), list(rest, 12_000, what)))
	}
	return text
}

func details(summary, text string) string {
	return "<details><summary>" + summary + "</summary>\n\n" + text + "\n</details>\n"
}

// when is a time that came as text.
func when(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return ""
	}
	return ", " + report.Escape(minute(t))
}

// nameRunes is as much of a kernel's name as is shown.
const nameRunes = 100

func kernelCode(r change.Run) string {
	return report.EscapeCode(report.Clip(report.Plain(r.Name), nameRunes))
}
