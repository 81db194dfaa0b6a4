package actions

import (
	"io"
	"strings"
)

// Defuse is a writer for text in which nothing is a workflow command, whatever it looks like.
// GitHub's runner reads standard output and standard error alike, and takes for a command what
// follows "::" at the start of a line or "##[" anywhere in one. Names of files and words of the
// change get into errors and progress, and a command could tell the next step to upload any file
// of the machine.
func Defuse(out io.Writer) io.Writer { return &defused{out: out, blank: true} }

type defused struct {
	out    io.Writer
	blank  bool // the line has nothing yet but space, or what may be space outside of ASCII
	colon  bool // and one colon
	hashes int  // that the line ends with
}

// Write puts a space into whatever could begin a command. Beginnings may come in several writes.
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

// An Inert error says the same as another, without workflow commands.
type Inert struct{ Err error }

func (e Inert) Error() string { return inert(e.Err.Error()) }

func (e Inert) Unwrap() error { return e.Err }

func inert(text string) string {
	var b strings.Builder
	_, _ = Defuse(&b).Write([]byte(text)) // a Builder takes everything
	return b.String()
}
