package embedded

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A gqlQuery is an operation in the GraphQL language, with the values of its variables filled in.
type gqlQuery struct {
	kind   string // Query or Mutation
	fields []*gqlSelection
}

// A gqlSelection is one requested field.
type gqlSelection struct {
	name, alias string
	args        map[string]any // string, int or nil
	fields      []*gqlSelection
	at          gqlPlace
}

// gqlToken matches one token, or the white space and commas before one.
var gqlToken = regexp.MustCompile(`^(?:[\s,]+|#[^\n]*|[_A-Za-z][_0-9A-Za-z]*|-?[0-9]+|"(?:[^"\\\n]|\\.)*"|[{}()\[\]:!=$])`)

type gqlParser struct {
	tokens  []gqlWord
	given   map[string]any
	defined map[string]any // variables with their values
	depth   int
}

type gqlWord struct {
	text string
	at   gqlPlace
}

// parseGraphQL parses one operation. The error is the one that GitHub answers.
func parseGraphQL(text string, variables map[string]any) (*gqlQuery, *gqlError) {
	p := &gqlParser{given: variables, defined: map[string]any{}}
	at := gqlPlace{1, 1}
	for len(text) > 0 {
		word := gqlToken.FindString(text)
		if word == "" {
			return nil, parseProblem(text[:1], at)
		}
		if !strings.ContainsAny(word[:1], " \t\r\n,#") {
			p.tokens = append(p.tokens, gqlWord{word, at})
		}
		text = text[len(word):]
		if i := strings.LastIndexByte(word, '\n'); i >= 0 {
			at = gqlPlace{at.Line + strings.Count(word, "\n"), len(word) - i}
		} else {
			at.Column += len(word)
		}
	}
	p.tokens = append(p.tokens, gqlWord{"", at}) // the end
	return p.operation()
}

func parseProblem(text string, at gqlPlace) *gqlError {
	message := fmt.Sprintf("Parse error on %q at [%d, %d]", text, at.Line, at.Column)
	if text == "" {
		message = "Unexpected end of document"
	}
	return &gqlError{Message: message, Locations: []gqlPlace{at}, Extensions: map[string]any{"code": "parseError"}}
}

func (p *gqlParser) peek() string { return p.tokens[0].text }

func (p *gqlParser) problem() *gqlError { return parseProblem(p.tokens[0].text, p.tokens[0].at) }

// next returns the next token. It stays at the end.
func (p *gqlParser) next() string {
	text := p.peek()
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return text
}

func (p *gqlParser) skip(want string) *gqlError {
	if p.peek() != want {
		return p.problem()
	}
	p.next()
	return nil
}

func isGQLName(text string) bool {
	return text != "" && (text[0] == '_' || text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z')
}

func (p *gqlParser) operation() (*gqlQuery, *gqlError) {
	q := &gqlQuery{kind: "Query"}
	switch word := p.peek(); {
	case word == "query" || word == "mutation":
		if p.next(); word == "mutation" {
			q.kind = "Mutation"
		}
		if isGQLName(p.peek()) {
			p.next()
		}
		if p.peek() == "(" {
			if err := p.definitions(); err != nil {
				return nil, err
			}
		}
	case word != "{":
		return nil, p.problem()
	}
	var err *gqlError
	if q.fields, err = p.selections(); err != nil {
		return nil, err
	}
	if p.peek() != "" {
		return nil, p.problem()
	}
	return q, nil
}

// definitions reads the list of variables, such as ($name: String!, $after: String).
func (p *gqlParser) definitions() *gqlError {
	p.next()
	for p.peek() != ")" {
		if err := p.skip("$"); err != nil {
			return err
		}
		name := p.peek()
		if !isGQLName(name) {
			return p.problem()
		}
		p.next()
		if err := p.skip(":"); err != nil {
			return err
		}
		if !isGQLName(p.peek()) {
			return p.problem()
		}
		kind, at := p.next(), p.tokens[0].at
		value, given := p.given[name]
		if n, ok := value.(float64); ok && n == float64(int(n)) {
			value = int(n)
		}
		p.defined[name] = value
		if p.peek() == "!" {
			if p.next(); !given || value == nil {
				return &gqlError{Locations: []gqlPlace{at}, Extensions: map[string]any{"value": nil, "problems": []any{map[string]any{"path": []any{}, "explanation": "Expected value to not be null"}}},
					Message: fmt.Sprintf("Variable $%s of type %s! was provided invalid value", name, kind)}
			}
		}
	}
	p.next()
	return nil
}

// maxGQLDepth is far above the depth of the schema.
const maxGQLDepth = 30

func (p *gqlParser) selections() ([]*gqlSelection, *gqlError) {
	if p.depth++; p.depth > maxGQLDepth {
		return nil, p.problem()
	}
	defer func() { p.depth-- }()
	if err := p.skip("{"); err != nil {
		return nil, err
	}
	var out []*gqlSelection
	for p.peek() != "}" || len(out) == 0 {
		f := &gqlSelection{name: p.peek(), at: p.tokens[0].at}
		if !isGQLName(f.name) {
			return nil, p.problem()
		}
		if p.next(); p.peek() == ":" {
			p.next()
			if f.alias, f.name = f.name, p.peek(); !isGQLName(f.name) {
				return nil, p.problem()
			}
			p.next()
		}
		var err *gqlError
		if p.peek() == "(" {
			if f.args, err = p.arguments(); err != nil {
				return nil, err
			}
		}
		if p.peek() == "{" {
			if f.fields, err = p.selections(); err != nil {
				return nil, err
			}
		}
		out = append(out, f)
	}
	p.next()
	return out, nil
}

func (p *gqlParser) arguments() (map[string]any, *gqlError) {
	p.next()
	out := map[string]any{}
	for p.peek() != ")" || len(out) == 0 {
		name := p.peek()
		if !isGQLName(name) {
			return nil, p.problem()
		}
		p.next()
		if err := p.skip(":"); err != nil {
			return nil, err
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	p.next()
	return out, nil
}

// value reads a variable, a number, a text or null.
func (p *gqlParser) value() (any, *gqlError) {
	problem, word := p.problem(), p.next()
	if word == "null" {
		return nil, nil
	}
	if word == "$" {
		at, name := p.tokens[0].at, p.next()
		v, ok := p.defined[name]
		if !ok {
			return nil, &gqlError{Locations: []gqlPlace{at}, Extensions: map[string]any{"code": "variableNotDefined", "variableName": name},
				Message: fmt.Sprintf("Variable $%s is used by anonymous query but not declared", name)}
		}
		return v, nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		return n, nil
	}
	if text, err := strconv.Unquote(word); err == nil {
		return text, nil
	}
	return nil, problem
}
