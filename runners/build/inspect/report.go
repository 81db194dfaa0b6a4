package inspect

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// A Report is the result of one run of one tool.
type Report struct {
	Findings []gates.Finding
	Hidden   int    // number of findings that are not listed
	Finished bool   // the tool finished and counted its findings
	Errors   int    // by the tool's own count
	Trouble  string // why the tool itself could not work, in its words
}

// Found reports whether the tool found anything wrong.
func (r Report) Found() bool { return len(r.Findings) > 0 || r.Hidden > 0 || r.Errors > 0 }

const (
	maxFindings = 50
	maxText     = 300 // bytes of a sentence or a name
)

// add lists a new finding, or counts one that is already listed.
func (r *Report) add(f gates.Finding) {
	f.Count = max(f.Count, 1)
	f.Text, f.Kernel = bounded(f.Text), bounded(f.Kernel)
	f.File, f.OtherFile = bounded(f.File), bounded(f.OtherFile)
	i := slices.IndexFunc(r.Findings, func(g gates.Finding) bool { return sameFinding(f, g) })
	switch {
	case i >= 0:
		r.Findings[i].Count += f.Count
		for _, c := range f.Cases {
			if !slices.Contains(r.Findings[i].Cases, c) {
				r.Findings[i].Cases = append(r.Findings[i].Cases, c)
			}
		}
	case len(r.Findings) < maxFindings:
		r.Findings = append(r.Findings, f)
	default:
		r.Hidden++
	}
}

// sameFinding reports whether two findings are the same one, seen twice.
func sameFinding(f, g gates.Finding) bool {
	return f.Kind == g.Kind && f.Text == g.Text && f.Severity == g.Severity && f.Kernel == g.Kernel &&
		f.File == g.File && f.Line == g.Line && f.OtherFile == g.OtherFile && f.OtherLine == g.OtherLine
}

// Add adds the findings of another run of the same tool.
func (r *Report) Add(other Report) {
	for _, f := range other.Findings {
		r.add(f)
	}
	r.Hidden += other.Hidden
	r.Errors += other.Errors
}

// Joined returns the findings of two runs on the same cases, each once. For a finding in both, it
// keeps the first run's.
func Joined(first, second []gates.Finding) []gates.Finding {
	all := slices.Clone(first)
	for _, f := range second {
		if !slices.ContainsFunc(first, func(g gates.Finding) bool { return sameFinding(f, g) }) {
			all = append(all, f)
		}
	}
	return all
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

// An access is one of the two accesses of a race.
type access struct {
	kind string // read, write or atomic
	at   frame
}

// raceOf returns a race. The result does not depend on which access the tool saw first.
func raceOf(a, b access, of string) gates.Finding {
	if cmp.Or(strings.Compare(a.at.file, b.at.file), a.at.line-b.at.line, strings.Compare(b.kind, a.kind)) > 0 {
		a, b = b, a
	}
	return gates.Finding{
		Kind: gates.KindRace, Text: "a race between " + a.kind + " and " + b.kind + of, Kernel: a.at.function,
		File: a.at.file, Line: a.at.line, OtherFile: b.at.file, OtherLine: b.at.line,
	}
}

// Late turns the gate's time limit into evidence, because the candidate was running when it stopped
// the tool. A cancelled run is no evidence.
func Late(ctx context.Context, run gates.Sanitized, err error) (gates.Sanitized, error) {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		run.Failure = &gates.Failure{Kind: gates.FailureTimeout, Detail: "the kernel did not come to its end within the gate's time"}
		return run, nil
	}
	return run, err
}

// Files knows the kernel's sources, because tools name them in several ways: by the whole path, or
// by the last part of it.
type Files struct {
	dir  string
	base map[string]string // paths from the folder, by the last part
}

const maxFiles = 10_000

// FilesOf lists the files in the kernel's folder.
func FilesOf(dir string) Files {
	f := Files{dir: dir, base: map[string]string{}}
	seen := 0
	// Files that cannot be read are left out; a finding in one then has no line.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		// Of two files with one name, the one nearer to the root is meant more often.
		if had, ok := f.base[d.Name()]; err == nil && (!ok || strings.Count(rel, "/") < strings.Count(had, "/")) {
			f.base[d.Name()] = filepath.ToSlash(rel)
		}
		return nil
	})
	return f
}

// own returns a file's path from the kernel's folder. ok is false for system headers and for the
// program around the kernel, which the author cannot fix.
func (f Files) own(file string) (path string, ok bool) {
	switch {
	case file == "":
		return "", false
	case filepath.IsAbs(file):
		rel, err := filepath.Rel(f.dir, file)
		return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
	}
	rel, ok := f.base[filepath.Base(file)]
	return rel, ok
}

// blame picks the frame that the author can fix: the innermost in the kernel's files, or else only
// the function.
func (f Files) blame(frames []frame) frame {
	for _, at := range frames {
		if path, ok := f.own(at.file); ok && at.line > 0 {
			return frame{at.function, path, at.line}
		}
	}
	if len(frames) > 0 {
		return frame{function: frames[0].function}
	}
	return frame{}
}
