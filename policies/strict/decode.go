// Package strict reads YAML into Go structs for policies, manifests and the bot's configuration. It
// reports every mistake, not only the first, and each with the file, the line, the column and the
// path of the field. It also writes JSON Schemas and reference tables from the same struct tags.
// yaml.v3's KnownFields decoder knows neither columns nor paths and stops at the first unknown
// field of a struct, so this package uses only yaml.v3's parser.
//
// It knows structs, slices, string-keyed maps, scalars and types that read themselves. It does not
// know interfaces, merge keys or tags: a reviewer must be able to read a policy from top to bottom.
package strict

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

// MaxBytes is the largest file that Decode reads. maxNodes bounds how many values aliases may
// expand to.
const (
	MaxBytes = 1 << 20
	maxNodes = 100_000
	maxDepth = 64
)

// Decode reads data into the struct that into points to. The error is Problems with every mistake
// found.
func Decode(file string, data []byte, into any) error {
	d := newDecoder(file)
	if root := d.parse(data); root != nil {
		at := d.at(root, nil, "", 0)
		d.survey(root, at, 0)
		at.Decode(into)
	}
	return d.err()
}

type decoder struct {
	file     string
	problems Problems
	reported map[Problem]bool // values may be read more than once, on top of others
	mistakes int              // all mistakes, also those that are not in problems
	nodes    int
	depth    int
	full     bool // maxNodes was reached, and reported
	deep     bool // maxDepth was reached, and reported
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, reported: map[Problem]bool{}}
}

// spend reports whether the file may expand to this many more values. A value that is not read
// counts as a mistake wherever it stands, and is reported once.
func (d *decoder) spend(n *Node, values int) bool {
	return d.nodes+values <= maxNodes || d.refuse(n, &d.full, "holds more than %d values, aliases unfolded (shorten the file)", maxNodes)
}

// Spend counts a value that is costly to read as several, and reports whether the file may expand
// to that many more.
func (n *Node) Spend(values int) bool {
	if !n.dec.spend(n, values) {
		return false
	}
	n.dec.nodes += values
	return true
}

// shallow is the same for nesting: an alias may stand inside the value that it names.
func (d *decoder) shallow(n *Node, depth int) bool {
	return depth < maxDepth || d.refuse(n, &d.deep, "is nested more than %d levels deep (write it flatter)", maxDepth)
}

func (d *decoder) refuse(n *Node, told *bool, format string, most int) bool {
	d.mistakes++
	if !*told {
		n.Errorf(format, most)
		*told = true
	}
	return false
}

var (
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
	validatorType   = reflect.TypeFor[Validator]()
)

func (d *decoder) value(n *Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		d.pointer(n, v)
		return
	}
	if !d.spend(n, 1) || !d.shallow(n, d.depth) {
		return
	}
	d.nodes++
	d.depth++
	defer func() { d.depth-- }()

	before := d.mistakes
	switch {
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
		n.dirty = d.mistakes != before
		v.Addr().Interface().(Validator).ValidateStrict(n)
	}
}

// pointer decodes an optional value. null and the word none remove what a lower layer had set.
func (d *decoder) pointer(n *Node, v reflect.Value) {
	if text, ok := n.Text(); n.Null() || (ok && text == none && removable(v.Type())) {
		v.SetZero()
		return
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	d.value(n, v.Elem())
}

const none = "none"

// removable reports whether the word none can only mean nothing. In a text it is a word like any
// other.
func removable(pointer reflect.Type) bool { return pointer.Elem().Kind() != reflect.String }

func (d *decoder) structure(n *Node, v reflect.Value) {
	if !n.Mapping() {
		n.Errorf("is %s (write a mapping with %s)", describe(n), strings.Join(keysOf(v.Type()).names, ", "))
		return
	}
	fields := keysOf(v.Type())
	seen := map[string]bool{}
	for _, p := range n.Pairs() {
		at, known := fields.index[p.Key]
		switch {
		case !known:
			p.Errorf("unknown field%s", fields.suggestion(p.Key))
		case seen[p.Key]:
			p.Errorf("is set twice (delete one)")
		default:
			d.value(p.Value, v.FieldByIndex(at))
		}
		seen[p.Key] = true
	}
	for _, f := range fields.required {
		if !seen[f.Name] && v.FieldByIndex(fields.index[f.Name]).IsZero() {
			n.Child(f.Name).Errorf("is required%s", f.hint())
		}
	}
}

func (d *decoder) slice(n *Node, v reflect.Value) {
	if !n.List() {
		n.Errorf("is %s (write a list: [a, b])", describe(n))
		return
	}
	items := n.Items()
	if !d.spend(n, len(items)) {
		return
	}
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
			p.Errorf("is set twice (delete one)")
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
		if text != "true" && text != "false" {
			n.Errorf("%q is not true or false", text)
			return
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			n.Errorf("%q is not a whole number (write e.g. 128)", text)
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		// ParseFloat also accepts hexadecimal, inf and nan, which no author means.
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(text, "xX") {
			n.Errorf("%q is not a number (write e.g. 0.06)", text)
			return
		}
		v.SetFloat(f)
	default:
		panic("strict: cannot decode into " + v.Type().String())
	}
}
