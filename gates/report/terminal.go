package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// TerminalOptions fit the text to a terminal.
type TerminalOptions struct {
	Width   int  // columns of the terminal; none or less is no limit
	Colour  bool // colours on marks, and bold headings
	Details bool // also the parts that a pull request shows folded
	// More says where the reader finds the parts that are left out; "" is report.md, which a check writes next to its evidence.
	More string
}

// Terminal is the verdict as aligned text. No line but those of a listing is
// longer than the width, provided that it is 40 or more.
func Terminal(v *gates.Verdict, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	for _, s := range build(v, Links{}).sections {
		if s.folded && !s.asked && !opt.Details {
			if s.more != "" {
				w.folded = append(w.folded, s.more)
			}
			continue
		}
		for _, bl := range s.blocks {
			w.block(bl)
		}
	}
	said := strings.Trim(w.b.String(), "\n") + "\n"
	if len(w.folded) > 0 {
		more := wrap("More "+cmp.Or(w.More, "in report.md")+": "+strings.Join(slices.Compact(w.folded), ", ")+".", w.Width)
		said += "\n" + strings.Join(more, "\n") + "\n"
	}
	return said
}

const indent = 2

type terminalWriter struct {
	TerminalOptions
	b      strings.Builder
	folded []string // the sections that were left out
}

func (w *terminalWriter) block(bl block) {
	switch bl := bl.(type) {
	case heading:
		for _, s := range wrap(w.line(bl.text), w.Width) {
			w.b.WriteString(w.bold(s) + "\n")
		}
		w.b.WriteByte('\n')
	case paragraph:
		w.paragraph(w.line(bl.text))
	case stanza:
		for _, l := range bl.lines {
			w.hanging(w.line(l), "", "  ")
		}
		w.b.WriteByte('\n')
	case bullets:
		for _, l := range bl.items {
			w.hanging(w.line(l), "• ", "  ")
		}
		w.b.WriteByte('\n')
	case listing:
		for s := range strings.SplitSeq(cleanLines(bl.text), "\n") {
			w.b.WriteString(strings.TrimRight(strings.Repeat(" ", indent)+s, " ") + "\n")
		}
		w.b.WriteByte('\n')
	case table:
		w.table(bl)
	case details:
		w.fold(bl)
	}
}

func (w *terminalWriter) fold(d details) {
	if !w.Details {
		w.folded = append(w.folded, strings.ToLower(plainText(d.summary)))
		return
	}
	for _, s := range wrap(w.line(d.summary), w.Width) {
		w.b.WriteString(w.bold(s) + "\n")
	}
	w.b.WriteByte('\n')
	for _, inner := range d.blocks {
		w.block(inner)
	}
}

func (w *terminalWriter) paragraph(s string) {
	for _, s := range wrap(s, w.Width) {
		w.b.WriteString(s + "\n")
	}
	w.b.WriteByte('\n')
}

// hanging indents all lines but the first.
func (w *terminalWriter) hanging(s, first, rest string) {
	lead := strings.Repeat(" ", indent) + first
	for _, s := range wrap(s, w.inner(indent+2)) {
		w.b.WriteString(strings.TrimRight(lead+s, " ") + "\n")
		lead = strings.Repeat(" ", indent) + rest
	}
}

// inner is the width that is left within a margin.
func (w *terminalWriter) inner(margin int) int {
	if w.Width <= 0 {
		return 0
	}
	return max(w.Width-margin, 1)
}

func (w *terminalWriter) table(t table) {
	if len(t.columns) == 0 {
		return
	}
	g := grid{columns: t.columns}
	for _, row := range t.rows {
		var cells []string
		for _, l := range row {
			cells = append(cells, w.line(l))
		}
		g.rows = append(g.rows, cells)
	}
	whole := grid{columns: g.columns, rows: append([][]string(nil), g.rows...)}
	var lines []string
	if widths, ok := g.layout(w.inner(indent)); ok {
		lines = g.lines(widths)
	} else {
		g.hidden = nil
		lines = whole.stacked(w.inner(indent))
	}
	for _, s := range lines {
		w.b.WriteString(strings.Repeat(" ", indent) + s + "\n")
	}
	if len(g.hidden) > 0 {
		for _, s := range wrap("(left out for lack of width: "+strings.Join(g.hidden, ", ")+")", w.inner(indent)) {
			w.b.WriteString(strings.Repeat(" ", indent) + s + "\n")
		}
	}
	w.b.WriteByte('\n')
}

func (w *terminalWriter) line(l line) string {
	var b strings.Builder
	for _, in := range l {
		if in.style == symbol {
			b.WriteString(w.sign(in.sign))
		} else {
			b.WriteString(in.text)
		}
	}
	return strings.Trim(b.String(), " ")
}

func (w *terminalWriter) bold(s string) string {
	if !w.Colour {
		return s
	}
	return "\x1b[1m" + s + "\x1b[22m"
}

func (w *terminalWriter) sign(s sign) string {
	shown := signs[s]
	if !w.Colour || shown.colour == "" {
		return shown.glyph
	}
	return "\x1b[" + shown.colour + "m" + shown.glyph + "\x1b[39m"
}
