package grammar

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxBody is GitHub's limit of a comment, in characters.
const maxBody = 65536

// commandLine finds the line that Parse reads: the first line that starts with / and that GitHub
// shows as text of a paragraph. A quote, code, a heading, text inside of HTML or hidden text is not
// a statement of the comment's author. In doubt a line is not read: a user can repeat a command
// that was not executed, but cannot take back a command that was never meant.
func commandLine(body string) (string, bool) {
	body = newlines.Replace(body)
	if utf8.RuneCountInString(body) > maxBody || !candidate.MatchString(body) || deep.MatchString(body) {
		return "", false
	}
	r := &reader{source: []byte(body)}
	if tangled(r.source) {
		return "", false
	}
	for node := markdown.Parser().Parse(text.NewReader(r.source)).FirstChild(); node != nil && !r.done; node = node.NextSibling() {
		r.block(node)
	}
	return r.line, r.found
}

// maxMarks limits the characters in one block of text that may begin a construct, because the time
// to parse them is quadratic.
const maxMarks = 2000

// tangled reports whether a comment was designed to take long. Code blocks may contain anything.
func tangled(source []byte) (yes bool) {
	doc := blocks.Parse(text.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock || n.IsRaw() {
			return ast.WalkContinue, nil
		}
		marks := 0
		for _, l := range n.Lines().Sliced(0, n.Lines().Len()) {
			for _, c := range l.Value(source) {
				if strings.IndexByte("*_~[]()<!`", c) >= 0 {
					marks++
				}
			}
		}
		yes = yes || marks > maxMarks
		return ast.WalkContinue, nil
	})
	return yes
}

var (
	// GitHub also turns bare URLs into links, but those do not start a line with /.
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote))
	// blocks parses paragraphs but not their contents.
	blocks = parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))

	newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	// candidate matches a line that may be a command. Without one, no closer look is needed.
	candidate = regexp.MustCompile(`(?m)^[\pZ\s\x{200b}\x{2060}\x{feff}]*/\S`)
	// deep matches a line with more nested quotes and lists than people write. Each level costs
	// time on every line.
	deep = regexp.MustCompile(`(?m)^(?:[ \t]*(?:[>+*-]|[0-9]{1,9}[.)])){20}`)
	// math matches a formula. A formula in single dollars must not be followed by a digit, so a
	// price is not a formula.
	math = regexp.MustCompile(`\$\$(?s:.)*?\$\$|\$[^\s$](?:[^$]*[^\s$])?\$(?:[^0-9$]|$)`)
)

// A reader walks the blocks of a comment up to the command line.
type reader struct {
	source []byte
	html   elements
	line   string
	found  bool
	done   bool // ignore everything after this
}

func (r *reader) block(node ast.Node) {
	switch node := node.(type) {
	case *ast.List, *ast.ListItem:
		for child := node.FirstChild(); child != nil && !r.done; child = child.NextSibling() {
			r.block(child)
		}
	case *ast.Paragraph, *ast.TextBlock:
		r.paragraph(node)
	default: // not the author's own words, but it may leave an element open
		r.walk(node, func(ast.Node) {})
	}
}

// walk visits a block in text order, and tracks the elements that its HTML opens.
func (r *reader) walk(node ast.Node, visit func(ast.Node)) {
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		visit(n)
		switch n := n.(type) {
		case *ast.RawHTML:
			r.html.read(string(n.Segments.Value(r.source)))
		case *ast.HTMLBlock:
			html := string(n.Lines().Value(r.source))
			if n.HasClosure() {
				html += string(n.ClosureLine.Value(r.source))
			}
			r.html.read(html)
		}
		return ast.WalkContinue, nil
	})
}

// paragraph searches the lines of a paragraph for the command line.
func (r *reader) paragraph(node ast.Node) {
	lines := node.Lines().Sliced(0, node.Lines().Len())
	if len(lines) == 0 {
		return
	}
	first, last := lines[0].Start, lines[len(lines)-1].Stop
	shown := bytes.Clone(r.source[first:last]) // without comments and code
	seen := bytes.Clone(shown)                 // without comments
	plain := map[int]bool{}                    // offsets at which plain text begins
	r.walk(node, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Text:
			plain[n.Segment.Start] = n.Parent() == node && !r.html.open()
			if n.Parent().Kind() == ast.KindCodeSpan {
				blank(shown, n.Segment.Start-first, n.Segment.Stop-first)
			}
		case *ast.RawHTML:
			if !bytes.HasPrefix(n.Segments.Value(r.source), []byte("<!--")) {
				return
			}
			for _, s := range n.Segments.Sliced(0, n.Segments.Len()) {
				blank(shown, s.Start-first, s.Stop-first)
				blank(seen, s.Start-first, s.Stop-first)
			}
		}
	})
	formulas := math.FindAllIndex(shown, -1)
	before := ""
	for _, l := range lines {
		begin := bytes.LastIndexByte(r.source[:l.Start], '\n') + 1
		text := bytes.TrimLeft(r.source[begin:l.Stop], " \t")
		at := l.Stop - len(text) - first
		for len(formulas) > 0 && formulas[0][1] <= at {
			formulas = formulas[1:]
		}
		line := strings.TrimFunc(string(text), space)
		switch {
		case forwarded(before, line, node.NextSibling()):
			r.done = true
			return
		case strings.HasPrefix(line, "/") && at >= 0 && plain[at+first] && (len(formulas) == 0 || at < formulas[0][0]):
			r.line, r.found, r.done = withoutComments(squeeze(seen[at:l.Stop-first])), true, true
			return
		}
		before = line
	}
}

// blank overwrites invisible text with zeros, so that the rest keeps its offsets. squeeze replaces
// the zeros by one space.
func blank(text []byte, from, to int) { clear(text[max(from, 0):min(to, len(text))]) }

var zeros = regexp.MustCompile(`\x00+`)

func squeeze(text []byte) string {
	return strings.TrimFunc(zeros.ReplaceAllString(string(text), " "), space)
}

// withoutComments removes parts that become HTML comments when the line stands alone: a stored line
// must parse to the same command again.
func withoutComments(line string) string {
	for {
		source := []byte(line)
		doc := markdown.Parser().Parse(text.NewReader(source))
		seen := bytes.Clone(source)
		_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if html, ok := n.(*ast.RawHTML); ok && entering && bytes.HasPrefix(html.Segments.Value(source), []byte("<!--")) {
				for _, s := range html.Segments.Sliced(0, html.Segments.Len()) {
					blank(seen, s.Start, s.Stop)
				}
			}
			return ast.WalkContinue, nil
		})
		if bytes.Equal(seen, source) {
			return line
		}
		line = squeeze(seen)
	}
}

// These patterns recognize quoted mail. Some mail programs do not mark the mail that they answer.
// They put it below a line that names its author, in the language of the person who answers.
var (
	wrote  = regexp.MustCompile(`(?i)(?:wrote|writes|schrieb.*|a écrit|escribió|escreveu|ha scritto|schreef.*|skrev.*|napisał(?:\(a\))?|написал.*|写道|のメール)\s*[:：]$`)
	dashes = regexp.MustCompile(`^-{3,}\s*\pL[\pL ]*-{3,}$`) // Original Message
	header = regexp.MustCompile(`^[*_]*(?:From|Von|De|Da|Van|Fra|Från|Od|От|发件人|差出人)[*_]*\s*[:：]`)
	field  = regexp.MustCompile(`^[*_]*\pL[\pL ]*[*_]*\s*[:：]`)
)

// forwarded reports whether everything after a line of a paragraph is somebody else's mail.
func forwarded(before, line string, next ast.Node) bool {
	switch {
	case dashes.MatchString(line), header.MatchString(before) && field.MatchString(line):
		return true
	case !wrote.MatchString(line):
		return false
	}
	return !strings.HasPrefix(line, "/") && (next == nil || next.Kind() != ast.KindBlockquote)
}
