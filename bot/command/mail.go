package command

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Programs that do not mark the mail they answer put it below a line that says who
// wrote it, in the language of whoever answers.
var (
	wrote  = regexp.MustCompile(`(?i)(?:wrote|writes|schrieb.*|a écrit|escribió|escreveu|ha scritto|schreef.*|skrev.*|napisał(?:\(a\))?|написал.*|写道|のメール)\s*[:：]$`)
	dashes = regexp.MustCompile(`^-{3,}\s*\pL[\pL ]*-{3,}$`) // Original Message
	header = regexp.MustCompile(`^[*_]*(?:From|Von|De|Da|Van|Fra|Från|Od|От|发件人|差出人)[*_]*\s*[:：]`)
	field  = regexp.MustCompile(`^[*_]*\pL[\pL ]*[*_]*\s*[:：]`)
)

// forwarded tells whether everything after a line of a paragraph is somebody else's
// mail.
func forwarded(before, line string, next ast.Node) bool {
	switch {
	case dashes.MatchString(line), header.MatchString(before) && field.MatchString(line):
		return true
	case !wrote.MatchString(line):
		return false
	}
	return !strings.HasPrefix(line, "/") && (next == nil || next.Kind() != ast.KindBlockquote)
}
