// Package report shows one verdict in every form: Markdown for a pull request,
// text for a terminal, one line for a title. Each form is written from the same
// document, so that no two can contradict each other. The package judges
// nothing, and reads neither files nor a clock.
package report

import (
	"slices"
	"strings"
	"unicode"
)

// A document is a verdict put into words and tables, without a form yet.
type document struct {
	sections []section
}

// A section is a part of the document that is shown or left out as a whole when space is short.
type section struct {
	name   string // for the list of sections that were left out
	more   string // how a terminal names it; "" where it does not
	keep   int    // its priority: the lowest is left out first
	brief  bool   // shown for one of several kernels, too
	folded bool   // below the visible part
	asked  bool   // folded, but always shown at a terminal
	blocks []block
}

// A block is a heading, paragraph, stanza, bullets, table, listing or details.
type block interface{ block() }

type (
	heading struct {
		level int
		text  line
	}
	paragraph struct{ text line }
	stanza    struct{ lines []line } // each on a separate line
	bullets   struct{ items []line }
	listing   struct{ text string } // verbatim
	details   struct {              // folded, where the form can fold
		summary line
		blocks  []block
	}
	table struct {
		columns []column
		rows    [][]line
	}
)

func (heading) block()   {}
func (paragraph) block() {}
func (stanza) block()    {}
func (bullets) block()   {}
func (listing) block()   {}
func (details) block()   {}
func (table) block()     {}

// A column says how the cells of a table's column are set.
type column struct {
	title    string
	right    bool // aligned to the right, for figures
	wrap     bool // may be broken over lines where width is short
	spare    int  // may be left out where width is short, the greatest first; 0 never
	optional bool // left out where every cell is blank
	figure   bool // not the name of its row, even as the first column
}

// newTable leaves out optional columns without any content.
func newTable(columns []column, rows [][]line) table {
	var t table
	t.rows = make([][]line, len(rows))
	for i, c := range columns {
		said := !c.optional
		for _, row := range rows {
			said = said || !row[i].blank()
		}
		if !said {
			continue
		}
		t.columns = append(t.columns, c)
		for r, row := range rows {
			t.rows[r] = append(t.rows[r], row[i])
		}
	}
	return t
}

// A line is a run of inlines.
type line []inline

type style int

const (
	plain style = iota
	strong
	code
	symbol
)

// An inline is text in one style, or a sign.
type inline struct {
	style style
	text  string
	url   string // where it leads to, in a form that has links
	sign  sign
}

// text is our own words or anybody's: whatever it holds is shown as it is and
// never acts as markup.
func text(s string) inline { return inline{style: plain, text: clean(s)} }
func bold(s string) inline { return inline{style: strong, text: Plain(s)} }
func mono(s string) inline { return inline{style: code, text: Plain(s)} }
func mark(s sign) inline   { return inline{style: symbol, sign: s} }
func cell(s string) line   { return line{text(s)} }

func codeCell(s string) line {
	if strings.TrimSpace(s) == "" {
		return cell(dash)
	}
	return line{mono(s)}
}

// prose is a sentence in which a pair of backticks sets code apart.
func prose(s string) line {
	s = Plain(s)
	var out line
	for {
		before, rest, opened := strings.Cut(s, "`")
		inside, after, closed := strings.Cut(rest, "`")
		if !opened || !closed || strings.TrimSpace(inside) == "" {
			return append(out, text(s))
		}
		if before != "" {
			out = append(out, text(before))
		}
		out = append(out, mono(inside))
		if s = after; s == "" {
			return out
		}
	}
}

// blank reports whether the line has no content.
func (l line) blank() bool {
	return !slices.ContainsFunc(l, func(in inline) bool { return in.style == symbol || in.text != "" && in.text != dash })
}

// clean makes any string one line of visible text. It removes characters that move the cursor, break
// lines, change the direction of writing or are invisible.
func clean(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r != nbsp && unicode.IsSpace(r):
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		case invisible(r):
			continue
		}
		b.WriteRune(r)
		space = false
	}
	return b.String()
}

// cleanLines is clean for a listing, whose lines and indentation stay.
func cleanLines(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Map(func(r rune) rune {
		if r != '\n' && invisible(r) {
			return -1
		}
		return r
	}, s)
	return strings.Trim(s, "\n")
}

func invisible(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Variation_Selector, r)
}
