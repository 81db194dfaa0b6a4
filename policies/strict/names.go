package strict

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

// IsName tells whether kernels, shapes, variants, rules and runners may be called so.
func IsName(text string) bool { return name.MatchString(text) }

// IsLabel tells whether a kind of runner may be called so.
func IsLabel(text string) bool { return label.MatchString(text) }

// IsCommit tells whether the text is a whole commit ID, of SHA-1 or of SHA-256.
func IsCommit(text string) bool { return commit.MatchString(text) }

// IsRepository tells whether the text is owner/name as GitHub has it. Neither part is
// a way to another folder.
func IsRepository(text string) bool {
	return repository.MatchString(text) && !strings.HasSuffix(text, "/.") && !strings.HasSuffix(text, "/..")
}
