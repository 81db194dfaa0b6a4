package policies

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// anyGlob tells whether one of the patterns matches one of the names.
func anyGlob(patterns []string, names ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(names, strict.Glob(pattern).MatchString)
	})
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
