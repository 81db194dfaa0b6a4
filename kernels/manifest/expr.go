package manifest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	types "github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/kernelgate/kernelgate/policies/strict"
)

const (
	maxExprLength = 200
	maxExprNodes  = 200
	// maxWhole is the largest number up to which every whole one is a float64.
	maxWhole = 1 << 53
)

// An Expr is arithmetic over dims and toggles, such as ceildiv(S, 64)*H.
// Conditions are written condition ? a : b. It is safe for concurrent use.
type Expr struct {
	text    string
	names   []string
	program *vm.Program
	at      *strict.Node // where it was read, until the manifest is checked

	condition bool // true or false, which are 1 and 0
	literal   bool // a text could stand here in its place
}

// An Env gives names their values.
type Env map[string]int

func (e Expr) String() string { return e.text }

// exprsOf returns every expression in parts of a manifest, found by their types, so that it also
// finds fields that are added later.
func exprsOf(parts ...any) []*Expr {
	var all []*Expr
	for _, part := range parts {
		all = appendExprs(all, reflect.ValueOf(part))
	}
	return all
}

func appendExprs(all []*Expr, v reflect.Value) []*Expr {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return appendExprs(all, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = appendExprs(all, v.Index(i))
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			all = appendExprs(all, value)
		}
	case reflect.Struct:
		if !v.CanAddr() {
			return all // a value of a map: ranges, which have none
		}
		switch part := v.Addr().Interface().(type) {
		case *Expr:
			return append(all, part)
		case *Bounds:
			return append(all, &part.least, &part.most)
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all = appendExprs(all, v.Field(i))
			}
		}
	}
	return all
}

// bare returns the name that the whole expression consists of.
func (e *Expr) bare() (name string, ok bool) {
	if len(e.names) == 1 && e.names[0] == e.text {
		return e.text, true
	}
	return "", false
}

// Strings, lists, blocks and the like would pass the engine's parser.
var arithmetic = regexp.MustCompile(`^[A-Za-z0-9_ .,()+*/%<>=!&|?:-]*$`)

func (e *Expr) UnmarshalStrict(n *strict.Node) {
	text, ok := n.Text()
	if !ok || n.Null() {
		text = ""
	}
	e.read(n, text)
}

// grammar is the language for the engine's parser.
var grammar = sync.OnceValue(func() *conf.Config {
	config := conf.CreateNew()
	for _, option := range language() {
		option(config)
	}
	return config
})

// engine is the same for its compiler, without the disabled words. Compilations use a copy with
// their known names: setting it up takes ten times as long as an expression.
var engine = sync.OnceValue(func() conf.Config {
	config := *grammar()
	config.Builtins = nil // all of them are
	return config
})

// read parses the expression from a text that is a part of the node's value.
func (e *Expr) read(n *strict.Node, text string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		n.Errorf("is not an expression (write e.g. ceildiv(S, 64))")
		return
	case len(text) > maxExprLength:
		n.Errorf("is %d characters long (write at most %d)", len(text), maxExprLength)
		return
	case !arithmetic.MatchString(text):
		n.Errorf("%q is not arithmetic (%s)", text, expressionPrompt)
		return
	case !n.Spend(len(text) / textPerValue):
		return
	}
	tree, err := parser.ParseWithConfig(text, grammar())
	if err != nil {
		n.Errorf("%q is not arithmetic: %s (%s)", text, engineMessage(err), expressionPrompt)
		return
	}
	names, odd := operands(tree.Node, nil)
	if odd != "" {
		n.Errorf("%q is not arithmetic: %s (%s)", text, odd, expressionPrompt)
		return
	}
	slices.Sort(names)
	*e = Expr{text: text, names: slices.Compact(names), at: n}
}

func (e *Expr) JSONSchema() map[string]any {
	return map[string]any{"title": "expression", "anyOf": []any{
		map[string]any{"type": "string", "pattern": arithmetic.String(), "maxLength": maxExprLength},
		map[string]any{"type": "number"},
	}}
}

// operands collects the names that an expression reads; odd is the first thing in it that this
// language does not have.
func operands(node ast.Node, names []string) (_ []string, odd string) {
	below := []ast.Node{}
	switch n := node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.IdentifierNode:
		names = append(names, n.Value)
	case *ast.UnaryNode:
		if !slices.Contains(unaryOperators, n.Operator) {
			return names, "it has no operator " + n.Operator
		}
		below = append(below, n.Node)
	case *ast.BinaryNode:
		if !slices.Contains(binaryOperators, n.Operator) {
			return names, "it has no operator " + n.Operator
		}
		below = append(below, n.Left, n.Right)
	case *ast.ConditionalNode:
		below = append(below, n.Cond, n.Exp1, n.Exp2)
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok || functions[callee.Value].call == nil {
			return names, fmt.Sprintf("it has no function %s", n.Callee)
		}
		below = append(below, n.Arguments...)
	default:
		return names, fmt.Sprintf("it has no %s", node)
	}
	for _, child := range below {
		if names, odd = operands(child, names); odd != "" {
			return names, odd
		}
	}
	return names, ""
}

// compile prepares the expression for values of the known names.
func (e *Expr) compile(known []string) error {
	env := make(map[string]any, len(known))
	for _, name := range known {
		env[name] = float64(0)
	}
	text := e.text
	if e.condition {
		text = "(" + text + ") ? 1 : 0"
	}
	language := engine()
	language.WithEnv(env)
	tree, err := types.ParseCheck(text, &language)
	var program *vm.Program
	if err == nil {
		program, err = compiler.Compile(tree, &language)
	}
	switch {
	case err != nil && e.condition:
		return &fault{expr: e, what: "is no condition", fix: "write e.g. S >= 1024"}
	case err != nil:
		return &fault{expr: e, what: "is not arithmetic: " + engineMessage(err), fix: expressionPrompt}
	}
	e.program = program
	return nil
}

// engineMessage returns the engine's message on one line, without its drawing and in the words of a
// manifest.
func engineMessage(err error) string {
	text := err.Error()
	if located, ok := errors.AsType[*file.Error](err); ok {
		text = located.Message
	}
	return strings.NewReplacer("\n", " ", "float64", "a number", "bool", "a condition", "token EOF", "end").Replace(text)
}

// A fault says what is wrong with a value. expr is nil if a combination of several is wrong.
type fault struct {
	expr      *Expr
	what, fix string
}

func (f *fault) Error() string { return f.at("") }

func (f *fault) at(where string) string {
	text := f.what + where + " (" + f.fix + ")"
	if f.expr != nil {
		text = strconv.Quote(f.expr.text) + " " + text
	}
	return text
}

// eval returns the expression's value: finite, and at most 2^53 in magnitude.
func (e *Expr) eval(env Env) (float64, error) {
	if name, ok := e.bare(); ok && e.program != nil {
		if v, ok := env[name]; ok { // most of them: no engine is needed for a dim's value
			return float64(v), nil
		}
	}
	values := make(map[string]any, len(e.names))
	for _, name := range e.names {
		v, ok := env[name]
		if !ok {
			return 0, &fault{e, "has no value for " + name, "give every dim of the manifest one"}
		}
		values[name] = float64(v)
	}
	if e.program == nil {
		return 0, &fault{e, "was not read from a manifest", "use Parse"}
	}
	result, err := expr.Run(e.program, values)
	if err != nil {
		if f, ok := errors.AsType[*fault](err); ok {
			return 0, &fault{e, f.what, f.fix}
		}
		return 0, &fault{e, "cannot be evaluated: " + engineMessage(err), expressionPrompt}
	}
	v, ok := result.(float64)
	if !ok || math.IsNaN(v) || math.Abs(v) > maxWhole {
		return 0, &fault{e, fmt.Sprintf("is %v", result), "keep it within ±2^53"}
	}
	return v, nil
}

// within is eval for a whole number between two bounds.
func (e *Expr) within(env Env, least, most int64) (int64, error) {
	v, err := e.eval(env)
	switch {
	case err != nil:
		return 0, err
	case v != math.Trunc(v):
		return 0, &fault{e, fmt.Sprintf("is not a whole number but %v", v), "use ceildiv, ceil or floor"}
	case v < float64(least):
		return 0, &fault{e, fmt.Sprintf("is %.0f", v), fmt.Sprintf("make it %d or more", least)}
	case v > float64(most):
		return 0, &fault{e, fmt.Sprintf("is %.0f", v), fmt.Sprintf("make it %d or less", most)}
	}
	return int64(v), nil
}
