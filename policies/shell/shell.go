// Package shell writes commands that users copy.
package shell

import (
	"regexp"
	"strings"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// Quote quotes a text so that a shell reads it as one word. Commands that users copy contain
// names of files and labels, which anybody may have chosen.
func Quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
