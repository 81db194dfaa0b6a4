package actions

import (
	"io"
	"strings"
)

// Defuse returns a writer that prevents text from being read as a workflow command. GitHub's runner
// reads both standard output and standard error. It takes text after "::" at the start of a line,
// or after "##[" anywhere in a line, for a command. File names and other texts of the change appear
// in errors and progress messages, and a command could make the next step upload any file of the
// machine.
func Defuse(out io.Writer) io.Writer { return &defused{out: out, blank: true} }

type defused struct {
	out    io.Writer
	blank  bool // the line so far is white space, or may be white space outside of ASCII
	colon  bool // followed by one colon
	hashes int  // number of # at the end of the line so far
}

// Write inserts a space into everything that could begin a command, even if the beginning is split
// over several writes.
func (d *defused) Write(p []byte) (int, error) {
	text := make([]byte, 0, len(p)+8)
	for _, c := range p {
		if c == ':' && d.colon || c == '[' && d.hashes >= 2 {
			text = append(text, ' ')
		}
		text = append(text, c)
		d.colon = d.blank && c == ':'
		d.blank = c == '\n' || c == '\r' || d.blank && (c <= ' ' || c >= 0x7f)
		if c == '#' {
			d.hashes++
		} else {
			d.hashes = 0
		}
	}
	if _, err := d.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// An Inert error has the message of another error, without workflow commands.
type Inert struct{ Err error }

func (e Inert) Error() string { return inert(e.Err.Error()) }

func (e Inert) Unwrap() error { return e.Err }

func inert(text string) string {
	var b strings.Builder
	_, _ = Defuse(&b).Write([]byte(text)) // a Builder never fails
	return b.String()
}
