package command

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// An Error is a comment that means a command of ours and cannot be followed.
type Error struct {
	Command string // the command that is meant, such as rebench
	Problem string // Markdown; what came from the comment stands in code spans, where it can ping nobody
}

func (e *Error) Error() string { return e.Problem }

// Parse finds the command in a comment. Only the first line that starts with /
// counts, and only outside of quotes and code. Without a command of ours the
// second result is false; an error is an *Error, made to be the reply.
func Parse(body string) (Command, bool, error) {
	line, ok := commandLine(body)
	if !ok {
		return nil, false, nil
	}
	word, rest, _ := cutSpace(line)
	name := strings.ToLower(strings.TrimPrefix(word, "/"))
	i := slices.IndexFunc(grammar, func(g entry) bool { return g.of.Name() == name })
	if i < 0 {
		if meant := misspelt(name); meant != "" {
			return nil, false, &Error{meant, fmt.Sprintf("%s is no command (write `/%s`, or `/help` for a list)", code(word), meant)}
		}
		return nil, false, nil
	}
	c, err := grammar[i].read(rest)
	if err != nil {
		return nil, false, &Error{name, "`/" + name + "`: " + err.Error()}
	}
	return c, true, nil
}

// misspelt is the command that is one typo away from word.
func misspelt(word string) string {
	for _, g := range grammar {
		if oneTypo(word, g.of.Name()) {
			return g.of.Name()
		}
	}
	return ""
}

// oneTypo tells whether one letter is missing, added, wrong or swapped with its
// neighbour.
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

// space tells whether nothing is seen of a character: what a phone's keyboard
// or a web page puts between words counts as the blank it looks like.
func space(r rune) bool {
	switch r {
	case '\u200b', '\u2060', '\ufeff':
		return true
	}
	return unicode.IsSpace(r)
}

// cutSpace cuts text at the first blank; the rest is trimmed.
func cutSpace(text string) (word, rest string, found bool) {
	i := strings.IndexFunc(text, space)
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimFunc(text[i:], space), true
}

const shownRunes = 60

// code shows a piece of a comment as a code span.
func code(text string) string {
	if text == "" {
		return "an empty value"
	}
	shown := []rune(strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case !unicode.IsPrint(r):
			return '\ufffd'
		}
		return r
	}, text))
	if len(shown) > shownRunes {
		shown = append(shown[:shownRunes], '…')
	}
	return "`" + string(shown) + "`"
}
