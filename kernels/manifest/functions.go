package manifest

import (
	"math"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Every value in an expression is a float64: whole numbers are exact up to 2^53, and larger ones
// are reported at the end instead of wrapping around.

type function struct {
	signature any
	call      func(x []float64) (float64, error)
}

var (
	unary    = new(func(float64) float64)
	binary   = new(func(float64, float64) float64)
	variadic = new(func(float64, ...float64) float64)
)

// functions are what an expression may call.
var functions = map[string]function{
	"min":      {variadic, func(x []float64) (float64, error) { return slices.Min(x), nil }},
	"max":      {variadic, func(x []float64) (float64, error) { return slices.Max(x), nil }},
	"ceil":     {unary, func(x []float64) (float64, error) { return math.Ceil(x[0]), nil }},
	"floor":    {unary, func(x []float64) (float64, error) { return math.Floor(x[0]), nil }},
	"sqrt":     {unary, squareRoot},
	"ceildiv":  {binary, ceilDiv},
	"roundup":  {binary, roundUp},
	"pow2ceil": {unary, powerOfTwo},
	"log2":     {unary, logarithm},
	"pow":      {binary, power},
}

// operators replace the engine's own: / would give infinity for a zero, and % is not defined for
// floats there.
var operators = map[string]function{
	"/":  {binary, func(x []float64) (float64, error) { return x[0] / x[1], zeroDivisor(x[1]) }},
	"**": {binary, power},
	"%":  {binary, func(x []float64) (float64, error) { return math.Mod(x[0], x[1]), zeroDivisor(x[1]) }},
}

var (
	functionNames    = []string{"ceildiv", "roundup", "pow2ceil", "min", "max", "ceil", "floor", "sqrt", "log2", "pow"}
	binaryOperators  = []string{"+", "-", "*", "/", "%", "**", "==", "!=", "<", "<=", ">", ">=", "and", "or", "&&", "||"}
	unaryOperators   = []string{"+", "-", "not", "!"}
	expressionWords  = []string{"and", "or", "not", "in", "let", "if", "else", "nil", "true", "false", "matches", "contains", "startsWith", "endsWith"}
	expressionPrompt = "write e.g. ceildiv(S, 64); functions: " + strict.JoinWords(functionNames)
)

func zeroDivisor(divisor float64) error {
	if divisor == 0 {
		return &fault{what: "divides by zero", fix: "use max(1, …) where a divisor can be 0"}
	}
	return nil
}

func squareRoot(x []float64) (float64, error) {
	if x[0] < 0 {
		return 0, &fault{what: "takes the root of a negative number", fix: "use max(0, …)"}
	}
	return math.Sqrt(x[0]), nil
}

// ceilDiv uses the remainder, which is exact where the quotient is not.
func ceilDiv(x []float64) (float64, error) {
	a, b := x[0], x[1]
	if err := zeroDivisor(b); err != nil {
		return 0, err
	}
	rest := math.Mod(a, b)
	q := math.Round((a - rest) / b)
	if rest != 0 && (rest > 0) == (b > 0) {
		q++
	}
	return q, nil
}

func roundUp(x []float64) (float64, error) {
	q, err := ceilDiv(x)
	return q * x[1], err
}

func powerOfTwo(x []float64) (float64, error) {
	if x[0] <= 1 {
		return 1, nil
	}
	fraction, exponent := math.Frexp(x[0])
	if fraction == 0.5 {
		exponent--
	}
	return math.Ldexp(1, exponent), nil
}

// logarithm is exact for powers of two.
func logarithm(x []float64) (float64, error) {
	if x[0] <= 0 {
		return 0, &fault{what: "takes the logarithm of a number that is not positive", fix: "use max(1, …)"}
	}
	return math.Log2(x[0]), nil
}

// power is exact for whole numbers up to 2^53. What has no value, such as the root of a negative number, is a mistake.
func power(x []float64) (float64, error) {
	y := math.Pow(x[0], x[1])
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return 0, &fault{what: "is a power without a value", fix: "raise a positive number, e.g. 2**log2(N)"}
	}
	return y, nil
}

// language returns the options that restrict the engine to arithmetic.
func language() []expr.Option {
	options := []expr.Option{
		expr.DisableAllBuiltins(), expr.AsFloat64(), expr.Optimize(false),
		expr.MaxNodes(maxExprNodes), expr.Patch(floatPatch{}),
	}
	for _, table := range []map[string]function{functions, operators} {
		for name, f := range table {
			options = append(options, expr.Function(name, func(params ...any) (any, error) {
				x := make([]float64, len(params))
				for i, p := range params {
					x[i] = p.(float64)
				}
				return f.call(x)
			}, f.signature))
		}
	}
	return options
}

// floatPatch rewrites a parsed expression: whole numbers become floats, and /
// and % become calls.
type floatPatch struct{}

func (floatPatch) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IntegerNode:
		ast.Patch(node, &ast.FloatNode{Value: float64(n.Value)})
	case *ast.BinaryNode:
		if operators[n.Operator].call != nil {
			ast.Patch(node, &ast.CallNode{
				Callee:    &ast.IdentifierNode{Value: n.Operator},
				Arguments: []ast.Node{n.Left, n.Right},
			})
		}
	}
}
