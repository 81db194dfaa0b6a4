package toolchain

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// entryLine finds the line where the source defines the entry, for annotations: 0 if it is not plain to see there.
func entryLine(b NVCCBuild) int {
	text, err := os.ReadFile(filepath.Join(b.Dir, b.Source))
	if err != nil {
		return 0
	}
	return definitionLine(string(text), b.Entry)
}

func definitionLine(source, entry string) int {
	source = blank(source)
	named := regexp.MustCompile(`\b` + regexp.QuoteMeta(entry) + `\s*\(`)
	const keyword = "__global__"
	for at := 0; ; {
		i := strings.Index(source[at:], keyword)
		if i < 0 {
			return 0
		}
		start := at + i
		at = start + len(keyword)
		end := strings.IndexAny(source[at:], ";{")
		// A declaration ends in a semicolon.
		if end >= 0 && source[at+end] == '{' && named.MatchString(source[at:at+end]) {
			return 1 + strings.Count(source[:start], "\n")
		}
	}
}

var blankable = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// blank takes comments and literals out of a source, and leaves its lines where they are.
func blank(source string) string {
	return blankable.ReplaceAllStringFunc(source, func(text string) string {
		return strings.Repeat("\n", strings.Count(text, "\n")) + " "
	})
}
