package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// Options bound the Markdown form.
type Options struct {
	// MaxBytes is how long the text may be; none or less is no limit. GitHub takes
	// 65,536 characters for a comment and 65,535 for a check run.
	MaxBytes int
	Part     Part
	Links    Links
	// Overridden is a verdict that somebody lets pass: what would make it pass is folded, and nothing says that the check fails.
	Overridden bool
}

// A Part of the Markdown form.
type Part int

const (
	Whole  Part = iota
	Above       // the visible part, with the title
	Brief       // the visible part of one of several kernels: its title, its tables and the steps to pass
	Folded      // the folded part, without the fold
	Flat        // everything, without the fold
)

// has reports whether a section belongs to the part.
func (p Part) has(s section) bool {
	switch p {
	case Above:
		return !s.folded
	case Brief:
		return s.brief
	case Folded:
		return s.folded
	}
	return true
}

// Markdown is the verdict for a comment, a check run, a step summary or a file.
// Text from the verdict is shown and never acts: it cannot break a table, ping
// anybody or close a hidden comment. Where space is short the least important
// sections are left out, and a line at the end says so.
func Markdown(v *gates.Verdict, opt Options) string {
	d := build(v, opt.Links)
	if opt.Overridden {
		d.overridden()
	}
	d.sections = slices.DeleteFunc(d.sections, func(s section) bool { return !opt.Part.has(s) })
	return shorten(d, opt.MaxBytes, opt.Part == Whole)
}

// overridden leaves out what is not true of a verdict that somebody lets pass.
func (d *document) overridden() {
	d.sections = slices.DeleteFunc(d.sections, func(s section) bool { return s.name == meaning })
	for i := range d.sections {
		if s := &d.sections[i]; s.name == whatToDo {
			s.folded, s.brief = true, false
		}
	}
}

// markdown ends with a single newline.
func markdown(blocks []block) string {
	var b strings.Builder
	for _, bl := range blocks {
		writeMarkdown(&b, bl)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// writeMarkdown ends every block with an empty line: within HTML too, Markdown
// begins again only after one.
func writeMarkdown(b *strings.Builder, bl block) {
	switch bl := bl.(type) {
	case heading:
		b.WriteString(strings.Repeat("#", bl.level) + " " + markdownLine(bl.text) + "\n\n")
	case paragraph:
		b.WriteString(markdownLine(bl.text) + "\n\n")
	case stanza:
		for i, l := range bl.lines {
			if i > 0 {
				b.WriteString("\\\n")
			}
			b.WriteString(markdownLine(l))
		}
		b.WriteString("\n\n")
	case bullets:
		for _, l := range bl.items {
			b.WriteString("- " + markdownLine(l) + "\n")
		}
		b.WriteByte('\n')
	case listing:
		writeListing(b, cleanLines(bl.text))
	case table:
		writeTable(b, bl)
	case details:
		b.WriteString("<details><summary>" + summaryLine(bl.summary) + "</summary>\n\n")
		for _, inner := range bl.blocks {
			writeMarkdown(b, inner)
		}
		b.WriteString("</details>\n\n")
	}
}

// writeListing prefers a fence, which GitHub gives a button to copy; text that
// could end a fence or hold HTML becomes HTML itself.
func writeListing(b *strings.Builder, s string) {
	if strings.ContainsAny(s, "<>`~") {
		b.WriteString("<pre>\n" + htmlEscaper.Replace(s) + "\n</pre>\n\n")
		return
	}
	b.WriteString("```text\n" + s + "\n```\n\n")
}

func writeTable(b *strings.Builder, t table) {
	for _, c := range t.columns {
		b.WriteString("| " + escape(c.title) + " ")
	}
	b.WriteString("|\n")
	for _, c := range t.columns {
		if c.right {
			b.WriteString("| --: ")
		} else {
			b.WriteString("| --- ")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		for _, l := range row {
			b.WriteString("| " + markdownLine(l) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteByte('\n')
}

func markdownLine(l line) string {
	var b strings.Builder
	for _, in := range l {
		switch in.style {
		case plain:
			b.WriteString(linked(escape(in.text), in.url))
		case strong:
			if in.text != "" {
				b.WriteString("**" + escape(in.text) + "**")
			}
		case code:
			// Two runs of backticks side by side would be one.
			b.WriteString(linked(escapeCode(in.text, strings.HasSuffix(b.String(), "`")), in.url))
		case symbol:
			b.WriteString(signs[in.sign].emoji)
		}
	}
	return strings.Trim(b.String(), " ")
}

// summaryLine is a line as HTML, which the summary of folded details is.
func summaryLine(l line) string {
	var b strings.Builder
	for _, in := range l {
		switch in.style {
		case symbol:
			b.WriteString(signs[in.sign].emoji)
		case strong:
			b.WriteString("<b>" + escapeSummary(in.text) + "</b>")
		default:
			b.WriteString(escapeSummary(in.text))
		}
	}
	return strings.TrimSpace(b.String())
}
