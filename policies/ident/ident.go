// Package ident knows which texts are names: of kernels, labels, commits and repositories.
package ident

import (
	"regexp"
	"strings"
)

var (
	name       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	label      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	commit     = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}/[A-Za-z0-9_.-]{1,100}$`)
)

// IsName reports whether the text is a valid name for kernels, shapes, variants, rules and runners.
func IsName(text string) bool { return name.MatchString(text) }

// IsLabel reports whether the text is a valid runner label.
func IsLabel(text string) bool { return label.MatchString(text) }

// IsCommit reports whether the text is a whole commit ID, of SHA-1 or of SHA-256.
func IsCommit(text string) bool { return commit.MatchString(text) }

// IsRepository reports whether the text is a GitHub owner/name. Neither part can lead to another
// folder.
func IsRepository(text string) bool {
	return repository.MatchString(text) && !strings.HasSuffix(text, "/.") && !strings.HasSuffix(text, "/..")
}

// Glob matches slash-separated names: * and ? stay within one folder, ** crosses folders, and **/
// also matches no folder at all.
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
