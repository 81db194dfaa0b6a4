package grammar

import (
	"fmt"
	"strings"
	"unicode"
)

// Parse finds the request in a comment. Only the first line that starts with / counts, and only if
// GitHub shows it as plain text. ok is false if that line is not a command of ours.
func Parse(body string) (r Request, ok bool) {
	line, ok := commandLine(body)
	if !ok {
		return Request{}, false
	}
	word, rest, _ := cutSpace(line)
	name := strings.ToLower(strings.TrimPrefix(word, "/"))
	wrong := func(command, problem string) (Request, bool) {
		return Request{Mistake: &Mistake{Command: command, Text: clip(line, shownLine), Problem: problem}}, true
	}
	g, ok := entryOf(name)
	if !ok {
		if meant := misspelt(name); meant != "" {
			return wrong(meant, fmt.Sprintf("%s is not a command (write `/%s`, or `/help` for a list)", code(word), meant))
		}
		return Request{}, false
	}
	c, err := g.read(rest)
	if err != nil {
		return wrong(name, "`/"+name+"`: "+err.Error())
	}
	return Request{Command: c}, true
}

// misspelt returns the command that is one typo away from word, or an empty string.
func misspelt(word string) string {
	for _, g := range grammar {
		if oneTypo(word, g.of.Name()) {
			return g.of.Name()
		}
	}
	return ""
}

// oneTypo reports whether one letter is missing, added, wrong or swapped with its neighbour.
func oneTypo(word, name string) bool {
	got, want := []rune(word), []rune(name)
	if n := len(got) - len(want); n < -1 || n > 1 {
		return false
	}
	for len(got) > 0 && len(want) > 0 && got[0] == want[0] {
		got, want = got[1:], want[1:]
	}
	for len(got) > 0 && len(want) > 0 && got[len(got)-1] == want[len(want)-1] {
		got, want = got[:len(got)-1], want[:len(want)-1]
	}
	swapped := len(got) == 2 && len(want) == 2 && got[0] == want[1] && got[1] == want[0]
	return swapped || len(got) <= 1 && len(want) <= 1 && len(got)+len(want) > 0
}

// space reports whether a character is invisible. The invisible characters that phone keyboards and
// web pages put between words count as spaces.
func space(r rune) bool {
	switch r {
	case '\u200b', '\u2060', '\ufeff':
		return true
	}
	return unicode.IsSpace(r)
}

// cutSpace splits a text at the first space and trims the rest.
func cutSpace(text string) (word, rest string, found bool) {
	i := strings.IndexFunc(text, space)
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimFunc(text[i:], space), true
}

// Limits of a word and of a whole line in a reply.
const (
	shownRunes = 60
	shownLine  = 300
)

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// code formats a part of a comment as a code span.
func code(text string) string {
	if text == "" {
		return "an empty value"
	}
	return "`" + clip(strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case !unicode.IsPrint(r):
			return '\ufffd'
		}
		return r
	}, text), shownRunes) + "`"
}
