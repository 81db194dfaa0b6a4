package strict

import (
	"regexp"
	"strings"
)

// Glob matches slash-separated names: * and ? stay within one folder, **
// crosses folders, and **/ also matches no folder at all.
func Glob(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for rest := pattern; rest != ""; {
		size := 1
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			size = 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			size = 2
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		default:
			if size = strings.IndexAny(rest, "*?"); size < 0 {
				size = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(rest[:size], "\uFFFD")))
		}
		rest = rest[size:]
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}
