package grammar

import (
	"regexp"
	"slices"
	"strings"
)

// elements are the HTML elements that a comment has opened so far. Text inside of an element may be
// folded, hidden or quoted, so it does not count before the element is closed.
type elements struct {
	stack []string
	lost  bool // an incomplete tag was found, so the position of what follows is unknown
}

func (e *elements) open() bool { return e.lost || len(e.stack) > 0 }

// maxOpen bounds the search at each closing tag.
const maxOpen = 100

var (
	tag = regexp.MustCompile(`^<(/?)([A-Za-z][A-Za-z0-9-]*)` +
		"(?:\\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\\s*=\\s*(?:[^\\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?)*" + `\s*/?>`)
	void = []string{"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
	// implied are the elements that end with their parent.
	implied = []string{"p", "li", "dt", "dd"}
)

// read parses complete tags and comments. Browsers also interpret everything else, but read does
// not try to find out where that ends: it sets lost.
func (e *elements) read(html string) {
	for !e.lost {
		at := strings.IndexByte(html, '<')
		if at < 0 {
			return
		}
		html = html[at:]
		if rest, ok := strings.CutPrefix(html, "<!--"); ok {
			inside, after, closed := strings.Cut(rest, "-->")
			// Some comments end earlier in a browser than in Markdown.
			e.lost = !closed || strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, "->") || strings.Contains(inside, "--!>")
			html = after
			continue
		}
		found := tag.FindStringSubmatch(html)
		if found == nil {
			e.lost = len(html) > 1 && strings.ContainsRune("/!?", rune(html[1])) || startsName.MatchString(html[1:])
			html = html[1:]
			continue
		}
		html = html[len(found[0]):]
		e.tag(strings.ToLower(found[2]), found[1] == "/")
	}
}

var startsName = regexp.MustCompile(`^[A-Za-z]`)

func (e *elements) tag(name string, closing bool) {
	switch {
	case slices.Contains(void, name):
	case !closing:
		e.stack = append(e.stack, name)
		e.lost = len(e.stack) > maxOpen
	default:
		for i, open := range slices.Backward(e.stack) {
			if open == name {
				e.stack = e.stack[:i]
			}
			if open == name || !slices.Contains(implied, open) {
				return
			}
		}
	}
}
