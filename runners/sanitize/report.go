// Package sanitize runs tools that watch every access of a kernel, and reads what
// they print: NVIDIA's compute-sanitizer around the process that launches, and the
// C compiler's own sanitizers within the process that calls. It judges no finding.
//
// What a tool prints is partly a stranger's: names of functions and files come from
// the code under test. A report is therefore read line by line, bounded in length
// and number, and what is not understood is no pass: see [Report.Finished].
package sanitize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// A Report is what one run of one tool said.
type Report struct {
	Findings []gates.Finding
	Hidden   int    // findings beyond those that are listed
	Finished bool   // the tool came to its end and counted what it found
	Errors   int    // by the tool's own count
	Trouble  string // why the tool itself could not work, in its words
}

// Found tells whether the tool saw anything wrong.
func (r Report) Found() bool { return len(r.Findings) > 0 || r.Hidden > 0 || r.Errors > 0 }

const (
	maxFindings = 50
	maxText     = 300 // bytes of a sentence or a name
)

// add counts a finding that was seen before, and lists a new one.
func (r *Report) add(f gates.Finding) {
	f.Count = max(f.Count, 1)
	f.Text, f.Kernel = bounded(f.Text), bounded(f.Kernel)
	f.File, f.OtherFile = bounded(f.File), bounded(f.OtherFile)
	i := slices.IndexFunc(r.Findings, func(g gates.Finding) bool {
		g.Count, g.Shape = f.Count, f.Shape
		return g == f
	})
	switch {
	case i >= 0:
		r.Findings[i].Count += f.Count
	case len(r.Findings) < maxFindings:
		r.Findings = append(r.Findings, f)
	default:
		r.Hidden++
	}
}

// Add takes over the findings of another run of the same tool.
func (r *Report) Add(other Report) {
	for _, f := range other.Findings {
		r.add(f)
	}
	r.Hidden += other.Hidden
	r.Errors += other.Errors
}

func bounded(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// A frame is one call on the way to a finding.
type frame struct {
	function, file string
	line           int
}

// A side is one access of a race.
type side struct {
	access string // read, write or atomic
	at     frame
}

// raceOf is a race, the same whichever side the tool saw first.
func raceOf(a, b side, of string) gates.Finding {
	if cmp.Or(strings.Compare(a.at.file, b.at.file), a.at.line-b.at.line, strings.Compare(b.access, a.access)) > 0 {
		a, b = b, a
	}
	return gates.Finding{
		Kind: gates.KindRace, Text: "a race between " + a.access + " and " + b.access + of, Kernel: a.at.function,
		File: a.at.file, Line: a.at.line, OtherFile: b.at.file, OtherLine: b.at.line,
	}
}
