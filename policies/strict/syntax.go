package strict

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The YAML parser says what it expected, but not at which character it failed. The line says more:
// a cause is the first thing in it that leads to the parser's message, with the place and the
// remedy.

// A cause is what most likely made a line invalid.
type cause struct {
	column int // from 1
	remedy string
	char   string // the character there, if a pattern found it
}

var (
	tabIndent    = regexp.MustCompile(`^ *\t`)
	secondColon  = regexp.MustCompile(`:\s.*?(:)(?:\s|$)`)
	oddStart     = regexp.MustCompile("(?:^|[:\\-,\\[{])\\s*([@`%])")
	starStart    = regexp.MustCompile(`(?:[:\-,]\s+|[\[{]\s*)([*&!])`)
	blockStart   = regexp.MustCompile(`:\s+([>|])\s*\S`)
	behindQuoted = regexp.MustCompile(`(?:"[^"]*"|'[^']*')\s*([^\s,\]}:#])`)
	badEscape    = regexp.MustCompile(`\\[^0abt\tnvfre "/\\N_LPxuU]`)
)

// causeOf looks for the cause in the line that the parser refused.
func causeOf(message, line string) cause {
	at := func(place []int, remedy string) (cause, bool) {
		if place == nil {
			return cause{}, false
		}
		start := place[len(place)-2]
		return cause{utf8.RuneCountInString(line[:start]) + 1, remedy, line[start : start+1]}, true
	}
	within := func(remedy string, patterns ...*regexp.Regexp) (cause, bool) {
		for _, p := range patterns {
			if c, ok := at(p.FindStringSubmatchIndex(line), remedy); ok {
				return c, true
			}
		}
		return cause{}, false
	}
	first := 1 + len(line) - len(strings.TrimLeft(line, " "))
	quote := "put the value in quotes"
	var c cause
	ok := false
	switch {
	case strings.Contains(message, "cannot start any token"):
		if place := tabIndent.FindStringIndex(line); place != nil {
			return cause{column: place[1], remedy: "this is a tab: indent with spaces"}
		}
		if c, ok = within(quote, oddStart); ok {
			c.remedy = fmt.Sprintf("%q begins no value: %s", c.char, quote)
		}
	case strings.Contains(message, "mapping values are not allowed"):
		if c, ok = within("a second colon: put the value in quotes, or write each field on a separate line", secondColon); !ok {
			return cause{column: first, remedy: "indent this line like the fields next to it"}
		}
	case strings.Contains(message, "expected ',' or"):
		if i := unclosed(line); i >= 0 {
			return cause{column: i + 1, remedy: fmt.Sprintf("%q opens here: close it, and put a comma between its items", line[i:i+1])}
		}
	case strings.Contains(message, "end of stream"), strings.Contains(message, "document indicator"):
		if i := openQuote(line); i >= 0 {
			return cause{column: utf8.RuneCountInString(line[:i]) + 1, remedy: "a quote opens here: close it"}
		}
	case strings.Contains(message, "could not find expected ':'"):
		return cause{column: first, remedy: "write name: value"}
	case strings.Contains(message, "alphabetic or numeric character"), strings.Contains(message, "unknown anchor"), strings.Contains(message, "tag"):
		if c, ok = within("", starStart); ok {
			c.remedy = fmt.Sprintf("%q begins something else than a text: %s", c.char, quote)
		}
	case strings.Contains(message, "comment or line break"):
		c, ok = within(`a value that begins with > or | needs quotes: write e.g. ">= 10%"`, blockStart)
	case strings.Contains(message, "unknown escape"):
		c, ok = within(`write \\ for a backslash, or use single quotes`, badEscape)
	case strings.Contains(message, "control characters"):
		if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 {
			return cause{column: utf8.RuneCountInString(line[:i]) + 1, remedy: "delete this character"}
		}
	case strings.Contains(message, "UTF-8"):
		for i, r := range []rune(line) {
			if r == utf8.RuneError {
				return cause{column: i + 1, remedy: "save the file as UTF-8"}
			}
		}
	case strings.Contains(message, "expected '-' indicator"):
		return cause{column: first, remedy: "indent this line like the item that it belongs to"}
	case strings.Contains(message, "expected key"):
		if c, ok = within("a quoted text ends before this: put all of the value in the quotes", behindQuoted); !ok {
			return cause{column: first, remedy: "indent this line like the fields next to it, or write name: value"}
		}
	case strings.Contains(message, "node content"):
		return cause{column: first, remedy: "a bracket or a comma stands where a value belongs: delete it, or write the value"}
	}
	if !ok {
		return cause{column: first, remedy: "look at the quotes, brackets and indentation of this line"}
	}
	return c
}

// unclosed returns the place of the last bracket that the line opens and does not close, or -1.
func unclosed(line string) int {
	var open []int
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '{':
			open = append(open, i)
		case (r == ']' || r == '}') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) == 0 {
		return -1
	}
	return open[len(open)-1]
}

// openQuote returns the place of a quote that the line opens and does not close, or -1.
func openQuote(line string) int {
	at, quote := -1, rune(0)
	for i, r := range line {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			at, quote = i, r
		case r == quote:
			at, quote = -1, 0
		}
	}
	return at
}
