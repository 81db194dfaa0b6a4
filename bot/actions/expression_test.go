package actions_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expressionToken matches a token of a workflow's condition. The tests evaluate conditions as
// GitHub does, as far as ours need it: operators, paths, contains and fromJSON.
// https://docs.github.com/actions/reference/evaluate-expressions-in-workflows-and-actions

var expressionToken = regexp.MustCompile(`^\s*(?:(\|\||&&|==|!=|[!(),])|'((?:[^']|'')*)'|([A-Za-z_][\w.-]*))`)

type expression struct {
	t      *testing.T
	tokens []string // operators unchanged, texts with a leading quote
	github map[string]any
}

// evaluate returns the value of an expression in a context.
func evaluate(t *testing.T, text string, github map[string]any) any {
	t.Helper()
	e := &expression{t: t, github: github}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := expressionToken.FindStringSubmatch(rest)
		if m == nil {
			t.Fatalf("no expression: %q in %q", rest, text)
		}
		rest = rest[len(m[0]):]
		switch {
		case m[1] != "" || m[3] != "":
			e.tokens = append(e.tokens, m[1]+m[3])
		default:
			e.tokens = append(e.tokens, "'"+strings.ReplaceAll(m[2], "''", "'"))
		}
	}
	value := e.either()
	if len(e.tokens) > 0 {
		t.Fatalf("%q is left over of %q", e.tokens, text)
	}
	return value
}

var interpolated = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// interpolate replaces the expressions in a text by their values.
func interpolate(t *testing.T, text string, github map[string]any) string {
	t.Helper()
	return interpolated.ReplaceAllStringFunc(text, func(part string) string {
		return fmt.Sprint(evaluate(t, strings.Trim(part, "${}"), github))
	})
}

func truthy(v any) bool { return v != nil && v != false && v != "" && v != 0.0 }

func (e *expression) next() string {
	if len(e.tokens) == 0 {
		e.t.Fatal("an expression ends early")
	}
	token := e.tokens[0]
	e.tokens = e.tokens[1:]
	return token
}

func (e *expression) skip(token string) bool {
	if len(e.tokens) == 0 || e.tokens[0] != token {
		return false
	}
	e.tokens = e.tokens[1:]
	return true
}

func (e *expression) either() any {
	value := e.both()
	for e.skip("||") {
		if other := e.both(); !truthy(value) {
			value = other
		}
	}
	return value
}

func (e *expression) both() any {
	value := e.compared()
	for e.skip("&&") {
		if other := e.compared(); truthy(value) {
			value = other
		}
	}
	return value
}

func (e *expression) compared() any {
	value := e.single()
	switch {
	case e.skip("=="):
		return equal(value, e.single())
	case e.skip("!="):
		return !equal(value, e.single())
	}
	return value
}

// equal ignores the case of texts and treats null as an empty text.
func equal(a, b any) bool {
	text := func(v any) string {
		if v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}
	return strings.EqualFold(text(a), text(b))
}

func (e *expression) single() any {
	token := e.next()
	switch {
	case token == "!":
		return !truthy(e.single())
	case token == "(":
		value := e.either()
		e.close()
		return value
	case token[0] == '\'':
		return token[1:]
	case e.skip("("):
		args := []any{e.either()}
		for e.skip(",") {
			args = append(args, e.either())
		}
		e.close()
		return e.call(token, args)
	}
	path := strings.Split(token, ".")
	if path[0] != "github" {
		e.t.Fatalf("%s is not known here", token)
	}
	var value any = e.github
	for _, name := range path[1:] {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func (e *expression) close() {
	if !e.skip(")") {
		e.t.Fatalf("%q should be a closing bracket", e.tokens)
	}
}

func (e *expression) call(function string, args []any) any {
	switch function {
	case "fromJSON":
		var value any
		if err := json.Unmarshal([]byte(args[0].(string)), &value); err != nil {
			e.t.Fatal(err)
		}
		return value
	case "contains":
		if list, ok := args[0].([]any); ok {
			return slices.ContainsFunc(list, func(v any) bool { return equal(v, args[1]) })
		}
		text, _ := args[0].(string)
		return strings.Contains(strings.ToLower(text), strings.ToLower(args[1].(string)))
	}
	e.t.Fatalf("the function %s is not known here", function)
	return nil
}

func TestExpressions(t *testing.T) {
	github := map[string]any{"event": map[string]any{"action": "opened", "number": 7.0, "body": "Say /HELP"}}
	for text, want := range map[string]any{
		"github.event.action == 'Opened'": true, "github.event.gone": nil, "!github.event.gone": true, "!!github.event.number": true,
		"github.event.gone || github.event.number": 7.0, "github.event.gone && 'x' || 'y'": "y", "github.event.gone.further != 'x'": true,
		"contains(github.event.body, '/help')": true, "contains(github.event.gone, '/help')": false,
		`contains(fromJSON('["a", "opened"]'), github.event.action)`: true, "(github.event.gone || 'commented') == 'commented'": true,
	} {
		if got := evaluate(t, text, github); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
	if got := interpolate(t, "a-${{ github.event.number || 'none' }}-b", github); got != "a-7-b" {
		t.Error(got)
	}
}
