package toolchain

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// maxSource bounds the bytes of a source that are searched for a line.
const maxSource = 4 << 20

// entryLines finds the lines where the source defines the entries, for annotations: 0 if that is
// not obvious. The folder is untrusted: a source may be a link to a device, or endless.
func entryLines(b NVCCBuild, entries []manifest.Entry) []int {
	lines := make([]int, len(entries))
	f, err := os.OpenInRoot(b.Dir, b.Source)
	if err != nil {
		return lines
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return lines
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return lines
	}
	for i, e := range entries {
		if b.isPTX() {
			lines[i] = ptxLine(string(text), e.Base())
			continue
		}
		lines[i] = definitionLine(string(text), e.Base())
	}
	return lines
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

// ptxLine finds .entry sum(, or the mangled name of a C++ kernel.
func ptxLine(source, entry string) int {
	source = blank(source)
	at := regexp.MustCompile(`\.entry\s+\w*` + regexp.QuoteMeta(entry) + `\w*\s*\(`).FindStringIndex(source)
	if at == nil {
		return 0
	}
	return 1 + strings.Count(source[:at[0]], "\n")
}

var blankable = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)

// blank replaces comments and literals of a source by spaces, so that line numbers stay.
func blank(source string) string {
	return blankable.ReplaceAllStringFunc(source, func(text string) string {
		return strings.Repeat("\n", strings.Count(text, "\n")) + " "
	})
}
