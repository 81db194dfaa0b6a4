// Package strict reads YAML into Go structs the way an author wants to be
// read: every mistake is reported, not the first alone, and each names the
// file, the line, the column and the path of the field. yaml.v3's own
// KnownFields decoder knows neither columns nor paths and stops at the first
// unknown field of a struct, so only its parser is used here.
//
// It knows structs, slices, string-keyed maps, scalars and types that read
// themselves. It does not know interfaces, merge keys or custom tags: a policy
// is data that a reviewer must be able to read top to bottom.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// MaxBytes is the largest file that Decode reads; MaxNodes bounds what aliases
// may unfold to.
const (
	MaxBytes = 1 << 20
	MaxNodes = 100_000
	maxDepth = 64
)

// Decode reads data into the struct that into points to. The error is Problems
// with every mistake found.
func Decode(file string, data []byte, into any) error {
	d := &decoder{file: file}
	root := d.parse(data)
	if root != nil {
		d.decodeInto(d.at(root, ""), into)
	}
	if len(d.problems) > 0 {
		return d.problems.sorted()
	}
	return nil
}

type decoder struct {
	file     string
	problems Problems
	nodes    int
	depth    int
}

func (d *decoder) report(p Problem) {
	p.File = d.file
	d.problems = append(d.problems, p)
}

// yamlLine finds the place that the YAML parser names in its messages.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > MaxBytes {
		d.report(Problem{Message: fmt.Sprintf("is %d bytes long (at most %d are read)", len(data), MaxBytes)})
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			d.report(Problem{Message: "is empty"})
			return nil
		}
		d.reportSyntax(err)
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			d.reportSyntax(err)
		} else {
			d.report(Problem{Line: second.Line, Column: second.Column, Message: "a second YAML document starts here (write one document a file)"})
		}
		return nil
	}
	if len(doc.Content) == 0 {
		d.report(Problem{Message: "is empty"})
		return nil
	}
	return doc.Content[0]
}

func (d *decoder) reportSyntax(err error) {
	text := err.Error()
	p := Problem{Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			p.Line, _ = strconv.Atoi(m[1])
		}
	}
	p.Message = "is not valid YAML: " + text
	d.report(p)
}

// at wraps a parsed node, following an alias to what it stands for. The place
// of a mistake is the alias's, where the author wrote it.
func (d *decoder) at(y *yaml.Node, path string) *Node {
	for hops := 0; y.Kind == yaml.AliasNode && y.Alias != nil && hops < maxDepth; hops++ {
		target := *y.Alias
		target.Line, target.Column = y.Line, y.Column
		y = &target
	}
	return &Node{yaml: y, path: path, dec: d}
}

func (d *decoder) decodeInto(n *Node, into any) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic("strict: decode into a non-pointer")
	}
	d.value(n, v.Elem())
}

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	validatorType   = reflect.TypeFor[Validator]()
)

func (d *decoder) value(n *Node, v reflect.Value) {
	if d.nodes++; d.nodes > MaxNodes {
		if d.nodes == MaxNodes+1 {
			n.Errorf("unfolds to more than %d values (an alias is repeated too often)", MaxNodes)
		}
		return
	}
	if d.depth++; d.depth > maxDepth {
		n.Errorf("is nested more than %d levels deep", maxDepth)
		d.depth--
		return
	}
	defer func() { d.depth-- }()

	before := len(d.problems)
	switch {
	case v.Kind() == reflect.Pointer:
		d.pointer(n, v)
		return
	case v.Addr().Type().Implements(unmarshalerType):
		v.Addr().Interface().(Unmarshaler).UnmarshalStrict(n)
	case v.Kind() == reflect.Struct:
		d.structure(n, v)
	case v.Kind() == reflect.Slice:
		d.slice(n, v)
	case v.Kind() == reflect.Map:
		d.mapping(n, v)
	default:
		d.scalar(n, v)
	}
	if v.Addr().Type().Implements(validatorType) {
		n.dirty = len(d.problems) != before
		v.Addr().Interface().(Validator).ValidateStrict(n)
	}
}

// pointer marks what may be left out. null and the word none take away what a
// value underneath had set.
func (d *decoder) pointer(n *Node, v reflect.Value) {
	if text, ok := n.Text(); n.Null() || (ok && text == "none" && v.Type().Elem().Kind() == reflect.Struct) {
		v.SetZero()
		return
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	d.value(n, v.Elem())
}

func (d *decoder) structure(n *Node, v reflect.Value) {
	if !n.Mapping() {
		n.Errorf("is %s (write a mapping with %s)", describe(n), strings.Join(fieldNames(v.Type()), ", "))
		return
	}
	fields := map[string]reflect.Value{}
	var names []string
	eachField(v, func(f Field, fv reflect.Value) {
		fields[f.Name] = fv
		names = append(names, f.Name)
	})
	seen := map[string]bool{}
	for _, p := range n.Pairs() {
		fv, known := fields[p.Key]
		switch {
		case p.Key == "<<":
			p.Errorf("merge keys are not read (repeat the fields, or put them under the top-level gates)")
		case !known:
			p.Errorf("unknown field%s", suggestion(p.Key, names))
		case seen[p.Key]:
			p.Errorf("is set twice")
		default:
			d.value(p.Value, fv)
		}
		seen[p.Key] = true
	}
	eachField(v, func(f Field, fv reflect.Value) {
		if f.Required && !seen[f.Name] && fv.IsZero() {
			n.Child(f.Name).Errorf("is required%s", f.hint())
		}
	})
}

func (d *decoder) slice(n *Node, v reflect.Value) {
	if !n.List() {
		n.Errorf("is %s (write a list: [a, b])", describe(n))
		return
	}
	items := n.Items()
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(item, v.Index(i))
	}
}

func (d *decoder) mapping(n *Node, v reflect.Value) {
	if !n.Mapping() {
		n.Errorf("is %s (write a mapping: name: value)", describe(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range n.Pairs() {
		key := reflect.ValueOf(p.Key).Convert(v.Type().Key())
		if v.MapIndex(key).IsValid() {
			p.Errorf("is set twice")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(p.Value, item)
		v.SetMapIndex(key, item)
	}
}

func (d *decoder) scalar(n *Node, v reflect.Value) {
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is %s (write %s)", describe(n), example(v.Kind()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch text {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			n.Errorf("%q is not true or false", text)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			n.Errorf("%q is not a whole number (write e.g. 128)", text)
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			n.Errorf("%q is not a number (write e.g. 0.06)", text)
			return
		}
		v.SetFloat(f)
	default:
		panic("strict: cannot decode into " + v.Type().String())
	}
}

func example(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return "a number"
	}
	return "a text"
}

func describe(n *Node) string {
	switch {
	case n.Null():
		return "empty"
	case n.Mapping():
		return "a mapping"
	case n.List():
		return "a list"
	}
	text, _ := n.Text()
	return strconv.Quote(text)
}

// suggestion names the known field that a misspelt one most likely meant.
func suggestion(got string, known []string) string {
	best, distance := "", 3
	for _, name := range known {
		if d := editDistance(got, name); d < distance {
			best, distance = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf(" (did you mean %s?)", best)
	}
	sorted := slices.Sorted(slices.Values(known))
	return fmt.Sprintf(" (known here: %s)", strings.Join(sorted, ", "))
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
