// Package terminal cleans what the program prints. Names, units and messages come from files that anybody may have
// written, and a terminal obeys control characters: they move the cursor, hide text and change titles.
package terminal

import (
	"bytes"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A Writer passes on text without control characters. Every one of them becomes U+FFFD, except for new lines, tabs, and
// the sequences that this program itself prints.
type Writer struct {
	out io.Writer

	mu      sync.Mutex
	pending []byte // the beginning of a character whose other bytes are still to come
}

// NewWriter is a writer to a file or to any other.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// repaint begins a line that replaces the last one. It is passed on only where a Write begins with it: text from a file
// comes after something. A [Line] begins every frame with it, in the same Write.
const repaint = "\r\x1b[2K"

// sequences are the styles of this program's reports: bold, red, green, yellow, and their ends.
var sequences = [][]byte{[]byte("\x1b[1m"), []byte("\x1b[22m"), []byte("\x1b[31m"), []byte("\x1b[32m"), []byte("\x1b[33m"), []byte("\x1b[39m")}

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.pending, p...)
	whole := len(text) - unfinished(text)
	w.pending = append([]byte(nil), text[whole:]...)
	if _, err := w.out.Write(clean(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return n
			}
			break
		}
	}
	return 0
}

func clean(text []byte) []byte {
	out := make([]byte, 0, len(text))
	if bytes.HasPrefix(text, []byte(repaint)) {
		out, text = append(out, repaint...), text[len(repaint):]
	}
	for len(text) > 0 {
		if own := sequence(text); own != nil {
			out, text = append(out, own...), text[len(own):]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if harmless(r) {
			out = append(out, text[:size]...)
		} else {
			out = utf8.AppendRune(out, utf8.RuneError)
		}
		text = text[size:]
	}
	return out
}

// sequence is the program's own sequence that a text begins with, or nil.
func sequence(text []byte) []byte {
	if text[0] == '\x1b' {
		for _, own := range sequences {
			if bytes.HasPrefix(text, own) {
				return own
			}
		}
	}
	return nil
}

// harmless tells whether a terminal only shows a character. Besides control characters it refuses those that turn the
// direction of what follows, and the line separators of Unicode.
func harmless(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return true
	case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
		return false
	}
	return true
}

// Size is the width of the terminal that a writer leads to; ok is false where it leads to none.
func Size(w io.Writer) (width int, ok bool) {
	if own, is := w.(*Writer); is {
		w = own.out
	}
	f, is := w.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil
}
