package command

import (
	"regexp"
	"strings"
)

// commandLine finds the line that Parse reads. A comment is Markdown, and what
// GitHub shows as a quote or as code was not said by its author; so this knows
// as much of Markdown's blocks as tells those from text. Where it knows less
// than GitHub, it takes text for code: a command that is not followed is asked
// again, one that was never meant cannot be taken back.
func commandLine(body string) (string, bool) {
	lines := strings.Split(newlines.Replace(body), "\n")
	var (
		b         = blocks{previous: blank}
		paragraph []string
	)
	for i, line := range lines {
		kind := b.next(line)
		if kind != text || b.starts {
			if found, ok := firstCommand(paragraph); ok {
				return found, true
			}
			paragraph = nil
		}
		if kind != text {
			continue
		}
		paragraph = append(paragraph, line)
		if forwarded(paragraph, lines[i+1:]) {
			break
		}
	}
	return firstCommand(paragraph)
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// forwarded tells whether the rest is somebody else's mail: programs that do
// not mark the mail they answer put it below such a line.
func forwarded(paragraph, rest []string) bool {
	last := strings.TrimFunc(paragraph[len(paragraph)-1], space)
	if strings.Trim(last, "- ") == "Original Message" {
		return true
	}
	begun := strings.HasPrefix(last, "On ")
	if len(paragraph) > 1 {
		begun = begun || strings.HasPrefix(paragraph[len(paragraph)-2], "On ")
	}
	if !begun || !strings.HasSuffix(last, "wrote:") {
		return false
	}
	for _, line := range rest {
		if line = strings.TrimFunc(line, space); line != "" {
			return line[0] != '>'
		}
	}
	return false
}

// A kind of line.
type kind int

const (
	text kind = iota
	blank
	quoted // > …
	hidden // code, or HTML that shows no text of the author's
)

// blocks is what the lines so far have left open.
type blocks struct {
	fence    fence
	html     string // the element or comment that is open, such as <pre
	depth    int    // of html
	list     int    // the column of the open list item's text
	previous kind
	starts   bool // the line begins a paragraph of its own
	heading  bool // and ends it
}

// A fence opens a code block; the zero fence is none.
type fence struct {
	mark   byte
	length int
	column int // of the list item that holds it
}

func (b *blocks) next(line string) kind {
	kind := b.classify(line)
	b.previous = kind
	return kind
}

func (b *blocks) classify(line string) kind {
	b.starts, b.heading = b.heading, false
	column, rest := indent(line)
	empty := strings.TrimFunc(line, space) == ""
	switch {
	case b.html != "":
		b.countHTML(line)
		return hidden
	case b.fence.mark != 0 && (empty || column >= b.fence.column):
		if b.fence.closedBy(column, rest) {
			b.fence = fence{}
		}
		return hidden
	case empty:
		return blank
	}
	if left := b.fence.mark != 0 || b.previous == blank; left && column < b.list {
		b.list = 0
	}
	b.fence = fence{}
	if strings.HasPrefix(strings.TrimLeftFunc(line, space), ">") {
		return quoted
	}
	outer := 0
	if column >= b.list {
		outer = b.list
	}
	switch {
	case column-outer > 3 && b.previous == text:
		return text // no code may begin within a paragraph
	case column-outer > 3:
		return hidden
	}
	for marker := b.marker(rest); marker != ""; marker = b.marker(rest) {
		b.starts = true
		column += len(marker)
		rest = rest[len(marker):]
		outer, b.list = column, column
	}
	if mark, length := fenceRun(rest); length >= 3 && (mark == '~' || !strings.Contains(rest[length:], "`")) {
		b.fence = fence{mark, length, outer}
		return hidden
	}
	if html := strings.ToLower(htmlOpening.FindString(rest)); html != "" {
		b.html = strings.TrimRight(html, "> \t")
		b.countHTML(rest)
		return hidden
	}
	b.heading = strings.HasPrefix(rest, "#")
	b.starts = b.starts || b.heading
	return text
}

var (
	listMarker  = regexp.MustCompile(`^(?:[-+*]|[0-9]{1,9}[.)]) {1,4}`)
	htmlOpening = regexp.MustCompile(`(?i)^(?:<!--|<(?:pre|code|blockquote|script|style|textarea)(?:[> \t]|$))`)
)

// marker is what begins a list item. Within a paragraph a list may begin with 1
// alone: a line that starts with a year is no item.
func (b *blocks) marker(rest string) string {
	marker := listMarker.FindString(rest)
	if b.previous == text && b.list == 0 && strings.Trim(marker, "-+*1.) ") != "" {
		return ""
	}
	return marker
}

// countHTML follows the open element to its end. Its last line is not read
// either: GitHub takes that whole for HTML.
func (b *blocks) countHTML(line string) {
	if b.html == "<!--" {
		if strings.Contains(line, "-->") {
			b.html = ""
		}
		return
	}
	line = strings.ToLower(line)
	b.depth += strings.Count(line, b.html) - strings.Count(line, "</"+b.html[1:])
	if b.depth <= 0 {
		b.html, b.depth = "", 0
	}
}

func (f fence) closedBy(column int, rest string) bool {
	mark, length := fenceRun(rest)
	return mark == f.mark && length >= f.length && column-f.column <= 3 && strings.Trim(rest[length:], " \t") == ""
}

// fenceRun measures the run of one of the two marks that text begins with.
func fenceRun(text string) (mark byte, length int) {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return 0, 0
	}
	return text[0], len(text) - len(strings.TrimLeft(text, text[:1]))
}

// indent measures as Markdown does: in columns, with tabs to every fourth.
func indent(line string) (column int, rest string) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			column++
		case '\t':
			column += 4 - column%4
		default:
			return column, line[i:]
		}
	}
	return column, ""
}
