package plan

import (
	"regexp"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
)

var (
	// spelling is the other ways to write # and the end of a line that goes on.
	spelling = strings.NewReplacer("??/", "\\", "??=", "#", "%:", "#")
	goesOn   = regexp.MustCompile(`\\[ \t\v\f\r]*\n`)
	// reads is a line that may read another file, however it is written.
	reads = regexp.MustCompile(`(?m)^.*(?:#|\*/).*\b(?:include|include_next|import|embed)\b.*$|^.*(?:__has_include|__has_embed|pch_preprocess).*$`)
	// plainly is one that does so in the usual way.
	plainly = regexp.MustCompile(`^[ \t\v\f]*#[ \t\v\f]*include[ \t\v\f]*(?:"([^"]+)"|<([^>]+)>)[ \t\v\f\r]*(?://.*|/\*[^*]*\*/[ \t\r]*)?$`)
	// probes asks whether a header is there, and able whether one can ask.
	probes = regexp.MustCompile(`\b__has_include[ \t\v\f]*\([ \t\v\f]*(?:"([^"]+)"|<([^>]+)>)[ \t\v\f]*\)`)
	able   = regexp.MustCompile(`\bdefined[ \t\v\f]*(?:\([ \t\v\f]*__has_include[ \t\v\f]*\)|[ \t\v\f]__has_include\b)|^[ \t\v\f]*#[ \t\v\f]*ifn?def[ \t\v\f]+__has_include\b`)
	// begins is a word that may be put together with another to ask for a header unseen.
	begins = regexp.MustCompile(`\b(?:__?|__ha?|__has_?|__has_in?|__has_incl?|__has_includ?|__has_inclu|__has_em?|__has_embe?)\b`)
	// assembles may have an assembler read a file, under a name that is put together.
	assembles = regexp.MustCompile(`asm|##`)
)

// An Include is a file that a text reads by name.
type Include struct {
	Name   string
	Beside bool // it is looked for beside the text first
}

// Included is the names that a source includes or asks for: whether a header is there
// decides what is built as much as what it says. It is not plain where they cannot all be
// told. A comment counts as text: one that only looks like it would hide what is read.
func Included(text []byte, mode kernels.Mode) (names []Include, plain bool) {
	take := func(m [][]byte) {
		names = append(names, Include{Name: string(m[1]) + string(m[2]), Beside: len(m[1]) > 0})
	}
	text = goesOn.ReplaceAll([]byte(spelling.Replace(string(text))), nil)
	if begins.Match(text) || mode == kernels.ModeCPU && assembles.Match(text) {
		return nil, false
	}
	for _, line := range reads.FindAll(text, -1) {
		for _, m := range probes.FindAllSubmatch(line, -1) {
			take(m)
		}
		rest := able.ReplaceAll(probes.ReplaceAll(line, []byte("0")), []byte("1"))
		if !reads.Match(rest) {
			continue
		}
		m := plainly.FindSubmatch(line)
		if m == nil {
			return nil, false
		}
		take(m)
	}
	for _, i := range names {
		if strings.Contains(i.Name, kernels.RepositoryFolder) {
			return nil, false // around the folders' own paths
		}
	}
	return names, true
}
