package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// zeroWidth parts what GitHub would otherwise join to a mention, a reference, a
// link or an emoji. Those are found in the rendered text, where a backslash no
// longer helps.
const zeroWidth = "&#8203;"

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// shortcode is an emoji's name: GitHub makes 💯 of "kernel.cu:100:".
var shortcode = regexp.MustCompile(`^:[A-Za-z0-9_+-]+:`)

// escape makes text safe and literal anywhere in a Markdown line: nobody is
// pinged, nothing is linked, no cell or line ends.
func escape(s string) string {
	var b strings.Builder
	runes := []rune(s)
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return 0
		}
		return runes[i]
	}
	digits := len(runes) - len([]rune(strings.TrimLeft(s, "0123456789"))) // at the start
	offset := 0
	for i, r := range runes {
		rest := s[offset:]
		offset += len(string(r))
		switch r {
		case '\\', '`', '*', '[', '~':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '&', '<', '>':
			b.WriteString(htmlEscaper.Replace(string(r)))
		case '|', '$':
			fmt.Fprintf(&b, "&#%d;", r)
		case '@', '#':
			b.WriteRune(r)
			b.WriteString(zeroWidth)
		case '_':
			if !wordy(at(i-1)) || !wordy(at(i+1)) {
				b.WriteByte('\\')
			}
			b.WriteByte('_')
		case ':':
			b.WriteByte(':')
			if strings.HasPrefix(rest, "://") || shortcode.MatchString(rest) {
				b.WriteString(zeroWidth)
			}
		case '.':
			if i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www") {
				b.WriteString(zeroWidth)
			}
			fallthrough
		case ')':
			// "1. " and "1) " begin a numbered list.
			if i > 0 && i == digits && !wordy(at(i+1)) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		case '-', '+', '=':
			// "- " begins a list, "---" a rule.
			if i == 0 && !wordy(at(1)) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
			if r == '-' && i >= 2 && strings.EqualFold(string(runes[i-2:i]), "gh") && unicode.IsDigit(at(i+1)) {
				b.WriteString(zeroWidth)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// escapeCode sets code apart. Within backticks nothing can be escaped, so that
// code with anything awkward in it is written as HTML.
func escapeCode(s string, awkward bool) string {
	switch {
	case s == "":
		return ""
	case awkward || strings.ContainsAny(s, "`|\\<>&"):
		return "<code>" + escape(s) + "</code>"
	}
	return "`" + s + "`"
}

// escapeSummary is for the summary of folded details, which is HTML: Markdown does
// nothing there, but GitHub still looks for mentions, references and emoji.
func escapeSummary(s string) string {
	return parted.ReplaceAllString(htmlEscaper.Replace(clean(s)), "$0"+zeroWidth)
}

var parted = regexp.MustCompile(`[@#]|(?i:gh-)|:\b|:/`)

// Escape makes anybody's words safe and literal anywhere in a line of Markdown:
// they ping nobody, link nothing, and end no cell, line or hidden comment.
func Escape(s string) string { return escape(Plain(s)) }

// EscapeProse is Escape for a sentence in which a pair of backticks sets code
// apart.
func EscapeProse(s string) string { return markdownLine(prose(s)) }

// EscapeCode sets words apart as code, whatever they hold.
func EscapeCode(s string) string { return escapeCode(Plain(s), false) }

// EscapeSummary is Escape for the summary of folded details, which is HTML.
func EscapeSummary(s string) string { return escapeSummary(strings.TrimSpace(s)) }

// Plain makes any string one line of visible text, for places that show text as
// it is, such as a check's title. In Markdown it is not safe.
func Plain(s string) string { return strings.TrimSpace(clean(s)) }
