package policies

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// anyGlob tells whether one of the patterns matches one of the names.
func anyGlob(patterns []string, names ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(names, compileGlob(pattern).MatchString)
	})
}

func compileGlob(pattern string) *regexp.Regexp {
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

// checkGlob refuses what other globs can do and this one cannot: such a
// pattern would silently match nothing.
func checkGlob(n *strict.Node, pattern string) {
	switch {
	case pattern == "":
		n.Errorf("is empty (write e.g. \"**\")")
	case strings.ContainsAny(pattern, `[]{}\`) || strings.HasPrefix(pattern, "!"):
		n.Errorf("%q: only *, ** and ? have a meaning here (write one pattern for each alternative)", pattern)
	}
}

func checkPathGlob(n *strict.Node, pattern string) {
	switch {
	case strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "./") || strings.Contains(pattern, ".."):
		n.Errorf("%q matches no file: paths start at the repository's root, without a slash (write e.g. kernels/**)", pattern)
	case strings.HasSuffix(pattern, "/"):
		n.Errorf("%q matches no file: it ends in a slash (write %s**)", pattern, pattern)
	default:
		checkGlob(n, pattern)
	}
}
