package strict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/kernelgate/policies/usage"
)

// A Problem is one mistake in a file, with the place where the author can fix it.
type Problem struct {
	File         string
	Line, Column int
	Path         string // the field, such as gates.ptxas.registers.max; empty for the file itself
	Message      string
}

// Text returns the field and what is wrong with it.
func (p Problem) Text() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, max(p.Column, 1), p.Text())
	}
	return p.File + ": " + p.Text()
}

// Problems are all mistakes of one file, in the order of its lines. It is the error that Decode
// returns, with one message per line. It is also a [usage.Error].
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// As lets errors.As find a usage.Error.
func (ps Problems) As(target any) bool {
	m, ok := target.(*usage.Error)
	if ok {
		m.Err = ps
	}
	return ok
}

const (
	maxProblems = 100
	maxMessage  = 800
)

// report records a mistake. An alias can repeat one a thousand times, and nobody reads more than
// the first hundred.
func (d *decoder) report(p Problem) {
	d.mistakes++
	if d.full {
		return // a value that was not read would look like another mistake
	}
	p.File, p.Message = d.file, shorten(p.Message, maxMessage)
	if len(d.problems) <= maxProblems && !d.reported[p] {
		d.reported[p] = true
		d.problems = append(d.problems, p)
	}
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	more := len(d.problems) > maxProblems
	ps := d.problems[:min(len(d.problems), maxProblems)]
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	if more {
		ps = append(ps, Problem{File: d.file, Message: fmt.Sprintf("has more mistakes than these %d (fix these first)", maxProblems)})
	}
	return ps
}

// shorten removes the middle of a long text: a message begins with what is wrong and ends with what
// to do.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit/2, len(text)-limit/2
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + " … " + text[tail:]
}
