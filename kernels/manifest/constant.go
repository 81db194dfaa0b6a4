package manifest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Constant is the value of a parameter that is not an argument: a number, which is an expression,
// or one of true, false, none, {text: silu} and {dtype: float16}.
type Constant struct {
	Number  *Expr
	Literal *Literal // in place of a number
}

// A Literal is a value of Python. The kind says how to read it.
type Literal struct {
	Kind   LiteralKind `json:"kind"`
	Text   string      `json:"text,omitempty"`   // of text and dtype; true or false of bool
	Number float64     `json:"number,omitempty"` // of number
}

// A LiteralKind is one of the types that a constant of Triton may have.
type LiteralKind string

const (
	LiteralNumber LiteralKind = "number"
	LiteralText   LiteralKind = "text"
	LiteralBool   LiteralKind = "bool"
	LiteralNone   LiteralKind = "none"
	LiteralDType  LiteralKind = "dtype"
)

func (l Literal) String() string {
	switch l.Kind {
	case LiteralNumber:
		return fmt.Sprint(l.Number)
	case LiteralNone:
		return "none"
	case LiteralBool:
		return l.Text
	}
	return fmt.Sprintf("{%s: %s}", l.Kind, l.Text)
}

func (c Constant) String() string {
	if c.Literal != nil {
		return c.Literal.String()
	}
	if c.Number == nil {
		return ""
	}
	return c.Number.String()
}

const (
	maxLiteral     = 200
	constantPrompt = "write a number, an expression, true, false, none, {text: silu} or {dtype: float16}"
)

var (
	literalText = regexp.MustCompile(`^[ -~]*$`)
	booleans    = map[string]string{"true": "true", "True": "true", "false": "false", "False": "false"}
)

// tritonDTypes are triton.language's names of formats, by themselves and by the manifest's names.
var tritonDTypes = func() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float8e5", "float8e4nv", "float8e4b15", "float16", "bfloat16", "float32", "float64"} {
		all[name] = name
	}
	for own, name := range map[DType]string{E4M3: "float8e4nv", E5M2: "float8e5", F16: "float16", BF16: "bfloat16", F32: "float32", F64: "float64", I8: "int8", U8: "uint8", I16: "int16", U16: "uint16", I32: "int32", U32: "uint32", I64: "int64", U64: "uint64", Bool: "int1"} {
		all[string(own)] = name
	}
	return all
}()

func (c *Constant) UnmarshalStrict(n *strict.Node) {
	text, scalar := n.Text()
	switch {
	case n.Null() || scalar && (text == "none" || text == "None"):
		c.Literal = &Literal{Kind: LiteralNone}
	case scalar && booleans[text] != "":
		c.Literal = &Literal{Kind: LiteralBool, Text: booleans[text]}
	case scalar:
		c.Number = new(Expr)
		c.Number.read(n, text)
		c.Number.literal = true
	case n.Mapping() && len(n.Pairs()) == 1:
		c.readMapping(n.Pairs()[0])
	default:
		n.Errorf("is no value of a constant (%s)", constantPrompt)
	}
}

// readMapping reads {text: …} and {dtype: …}.
func (c *Constant) readMapping(p strict.Pair) {
	text, scalar := p.Value.Text()
	switch {
	case p.Key != string(LiteralText) && p.Key != string(LiteralDType):
		p.Errorf("is no kind of constant (%s)", constantPrompt)
	case !scalar || p.Value.Null() || len(text) > maxLiteral || !literalText.MatchString(text):
		p.Value.Errorf("is no text of up to %d plain characters (write e.g. %s: %s)", maxLiteral, p.Key, map[string]string{"text": "silu", "dtype": "float16"}[p.Key])
	case p.Key == string(LiteralText):
		c.Literal = &Literal{Kind: LiteralText, Text: text}
	case tritonDTypes[text] == "":
		p.Value.Errorf("%q is no format of triton.language (write one of %s)", text, strings.Join(slices.Compact(slices.Sorted(maps.Values(tritonDTypes))), ", "))
	default:
		c.Literal = &Literal{Kind: LiteralDType, Text: tritonDTypes[text]}
	}
}

func (c *Constant) JSONSchema() map[string]any {
	kind := func(key string) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{key: map[string]any{"type": "string"}}, "required": []string{key}, "additionalProperties": false}
	}
	return map[string]any{"title": "constant", "anyOf": []any{
		(*Expr)(nil).JSONSchema(), map[string]any{"type": "boolean"}, map[string]any{"type": "null"}, kind("text"), kind("dtype"),
	}}
}

// at returns the constant's value.
func (c *Constant) at(env Env) (Literal, error) {
	if c.Literal != nil {
		return *c.Literal, nil
	}
	v, err := c.Number.eval(env)
	return Literal{Kind: LiteralNumber, Number: v}, err
}

// Constants are values of parameters by their names.
type Constants map[string]*Constant

func (c *Constants) UnmarshalStrict(n *strict.Node) {
	*c = Constants{}
	if n.Null() {
		return
	}
	eachNamed(n, "BLOCK: 128", func(p strict.Pair) {
		if !pythonName.MatchString(p.Key) {
			p.Errorf("%q is no name of a parameter (write letters, digits and _)", p.Key)
		}
		value := &Constant{}
		p.Value.Decode(value)
		(*c)[p.Key] = value
	})
}

func (c *Constants) JSONSchema() map[string]any {
	return map[string]any{"title": "mapping of names to constants", "type": "object", "maxProperties": maxNamed, "additionalProperties": (*Constant)(nil).JSONSchema()}
}

// values returns all constants at a size.
func (c Constants) values(env Env) (map[string]Literal, error) {
	all := make(map[string]Literal, len(c))
	for _, name := range slices.Sorted(maps.Keys(c)) {
		var err error
		if all[name], err = c[name].at(env); err != nil {
			return nil, err
		}
	}
	return all, nil
}
