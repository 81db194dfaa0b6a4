package entryname

import (
	"regexp"
	"strings"
)

// castNumbers is how some demanglers write template arguments: (int)64, (bool)1.
var castNumbers = regexp.MustCompile(`\((bool|[a-z ]*(?:int|long|char|short)[a-z ]*)\)(-?[0-9]+)`)

// Demangled parses a name that a tool has demangled, as traces have it: void ns::scale<(int)64>(float*, int). A
// mangled name is parsed as well, and a name that is neither is its own.
func Demangled(text string) Name {
	if strings.HasPrefix(text, "_Z") || len(text) > 1<<MaxDemangled {
		return Parse(text)
	}
	whole := castNumbers.ReplaceAllStringFunc(written(text), func(cast string) string {
		m := castNumbers.FindStringSubmatch(cast)
		if m[1] == "bool" {
			return map[string]string{"0": "false"}[m[2]] + map[bool]string{true: "true"}[m[2] != "0"]
		}
		return m[2]
	})
	n := Name{Symbol: text, Text: text}
	head, params := whole, ""
	if open := lastGroup(whole); open > 0 {
		head, params = whole[:open], whole[open:]
	}
	head = withoutReturnType(strings.TrimSpace(head))
	n.named, n.Bare = nameKey(head), nameKey(withoutTemplates(head))
	n.Whole = n.named + nameKey(params)
	return n
}

// lastGroup is where the parentheses begin that end the text; -1 where none do.
func lastGroup(text string) int {
	if !strings.HasSuffix(text, ")") {
		return -1
	}
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// withoutReturnType is what follows the last blank outside of template arguments.
func withoutReturnType(text string) string {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '>', ')':
			depth++
		case '<', '(':
			depth--
		case ' ':
			if depth == 0 {
				return text[i+1:]
			}
		}
	}
	return text
}

func withoutTemplates(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch r {
		case '<':
			depth++
		case '>':
			depth--
		default:
			if depth == 0 {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
