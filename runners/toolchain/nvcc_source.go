package toolchain

import (
	"io"
	"os"
	"regexp"
	"strings"
)

// maxSource is the bytes of a source that are searched for a line.
const maxSource = 4 << 20

// entryLine finds the line where the source defines the entry, for annotations: 0 if it is not plain to see there. The folder is
// a stranger's, where a source may be a link to a device or be endless.
func entryLine(b NVCCBuild) int {
	f, err := os.OpenInRoot(b.Dir, b.Source)
	if err != nil {
		return 0
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
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
		end := strings.IndexAny(source[start:], ";{")
		if end < 0 {
			return 0
		}
		// A declaration ends in a semicolon.
		if source[start+end] == '{' && named.MatchString(source[start:start+end]) {
			return 1 + strings.Count(source[:start], "\n")
		}
		at = start + end
	}
}

var blankable = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// blank takes comments and literals out of a source, and leaves its lines where they are.
func blank(source string) string {
	return blankable.ReplaceAllStringFunc(source, func(text string) string {
		return strings.Repeat("\n", strings.Count(text, "\n")) + " "
	})
}
