package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// A CompileError is a compiler's refusal: evidence about the source, not a
// fault of the runner.
type CompileError struct {
	Summary     string
	Log         string
	Diagnostics []gates.Diagnostic
}

func (e *CompileError) Error() string { return e.Summary }

// Errors returns the messages that are errors.
func (e *CompileError) Errors() []gates.Diagnostic {
	return slices.DeleteFunc(slices.Clone(e.Diagnostics), func(d gates.Diagnostic) bool { return !IsError(d) })
}

// IsError reports whether a diagnostic is an error, not a warning or a note.
func IsError(d gates.Diagnostic) bool { return d.Severity == "error" }

// LastLine returns the last line of a text that is not empty.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Headline returns the first error in one line, and what to do about a missing header; empty if the compiler named none.
func (e *CompileError) Headline() string {
	first := FirstError(e.Diagnostics)
	if first == "" {
		return ""
	}
	i := slices.IndexFunc(e.Diagnostics, IsError)
	if remedy := headerRemedy(e.Diagnostics[i].Message); remedy != "" {
		return first + "; " + remedy
	}
	return first
}

// FirstError returns the first error among the messages in one line, with the number of later ones;
// empty if there is none.
func FirstError(messages []gates.Diagnostic) string {
	first, errors := "", 0
	for _, d := range messages {
		if !IsError(d) {
			continue
		}
		if errors++; first == "" {
			first = d.Message
			if d.File != "" {
				first = fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message)
			}
		}
	}
	if errors > 1 {
		return fmt.Sprintf("%s (and %d more errors)", first, errors-1)
	}
	return first
}
