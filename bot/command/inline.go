package command

import "strings"

// firstCommand finds the first line of a paragraph that starts with / outside
// of code spans and HTML comments, and returns it without its comments.
func firstCommand(paragraph []string) (string, bool) {
	hides := inlineStretches(strings.Join(paragraph, "\n"), false)
	start := 0
	for _, line := range paragraph {
		slash := commandStart(line)
		at := start + slash
		for len(hides) > 0 && hides[0].to <= at {
			hides = hides[1:]
		}
		if slash >= 0 && (len(hides) == 0 || at < hides[0].from) {
			return strings.TrimFunc(withoutComments(line[slash:]), space), true
		}
		start += len(line) + 1
	}
	return "", false
}

// commandStart is where the line's first / stands, if nothing but three blanks
// at most comes before it; else -1.
func commandStart(line string) int {
	blanks := 0
	for i, r := range line {
		switch {
		case r == '/' && blanks <= 3:
			return i
		case r == '\t' || !space(r):
			return -1
		}
		blanks++
	}
	return -1
}

// A stretch of a paragraph is a code span or an HTML comment.
type stretch struct {
	from, to int
	comment  bool
}

// withoutComments puts a blank in the place of every HTML comment, one that
// goes on in the next line too: what nobody sees is no argument.
func withoutComments(line string) string {
	var b strings.Builder
	at := 0
	for _, s := range inlineStretches(line, true) {
		if s.comment {
			b.WriteString(line[at:s.from] + " ")
			at = s.to
		}
	}
	b.WriteString(line[at:])
	return b.String()
}

// inlineStretches finds code spans and comments from left to right, as whichever
// begins first hides the other. What is not closed is text, but for a comment
// where open is true.
func inlineStretches(text string, open bool) []stretch {
	var found []stretch
	unclosed := map[string]bool{} // each is looked for once, or a hostile comment takes quadratic time
	for i := 0; i < len(text); {
		length, closing, comment := 1, "", false
		switch {
		case text[i] == '\\' && i+1 < len(text) && (text[i+1] == '`' || text[i+1] == '\\' || text[i+1] == '<'):
			length = 2
		case text[i] == '`':
			length = len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
			closing = text[i : i+length]
		case strings.HasPrefix(text[i:], "<!--"):
			length, closing, comment = len("<!--"), "-->", true
		}
		if closing != "" {
			end := -1
			if !unclosed[closing] {
				end = closes(text, i+length, closing, comment)
			}
			if end < 0 && comment && open {
				end = len(text)
			}
			if end >= 0 {
				found = append(found, stretch{i, end, comment})
				i = end
				continue
			}
			unclosed[closing] = true
		}
		i += length
	}
	return found
}

// closes finds the end of a code span, which is a run of as many backticks as
// opened it, or of a comment.
func closes(text string, from int, closing string, comment bool) int {
	if comment {
		if end := strings.Index(text[from:], closing); end >= 0 {
			return from + end + len(closing)
		}
		return -1
	}
	for i := from; i < len(text); i++ {
		run := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		if run == len(closing) {
			return i + run
		}
		i += max(run-1, 0)
	}
	return -1
}
