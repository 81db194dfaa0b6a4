package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// A Node is one place in the file, with the path that leads to it. Types that check themselves
// (Unmarshaler, Validator) read it and report through it.
type Node struct {
	yaml   *yaml.Node
	parent *Node
	key    string // in the parent's mapping; empty in a list, where index counts
	index  int
	dec    *decoder
	under  *Node // see Over
	dirty  bool
}

// An Unmarshaler reads its own value from a node and reports mistakes in it through Errorf.
type Unmarshaler interface {
	UnmarshalStrict(n *Node)
}

// A Validator checks a value after its fields were read. If a field was refused, Clean is false and
// combinations of fields cannot be checked.
type Validator interface {
	ValidateStrict(n *Node)
}

// at wraps a parsed node and follows an alias to its target. The place of a mistake is the alias's,
// where the author wrote it.
func (d *decoder) at(y *yaml.Node, parent *Node, key string, index int) *Node {
	if y.Kind == yaml.AliasNode {
		target := *y.Alias
		target.Line, target.Column = y.Line, y.Column
		y = &target
	}
	return &Node{yaml: y, parent: parent, key: key, index: index, dec: d}
}

// Errorf reports a mistake at this node.
func (n *Node) Errorf(format string, args ...any) {
	n.dec.report(Problem{
		Line: n.yaml.Line, Column: n.yaml.Column,
		Path: n.Path(), Message: fmt.Sprintf(format, args...),
	})
}

// Clean reports whether everything below the node was read without a mistake.
func (n *Node) Clean() bool { return !n.dirty }

// Over returns this node laid over another: Child finds a field where it was last set, here or in
// the lower node.
func (n *Node) Over(under *Node) *Node {
	laid := *n
	laid.under = under
	return &laid
}

// Text returns the scalar as it was written. ok is false if the node is a list or a mapping.
func (n *Node) Text() (text string, ok bool) {
	if n.yaml.Kind != yaml.ScalarNode {
		return "", false
	}
	return n.yaml.Value, true
}

// Null reports whether the value is absent (null, ~ or empty).
func (n *Node) Null() bool {
	return n.yaml.Kind == yaml.ScalarNode && n.yaml.Tag == "!!null"
}

// Mapping and List report the kind of the node.
func (n *Node) Mapping() bool { return n.yaml.Kind == yaml.MappingNode }
func (n *Node) List() bool    { return n.yaml.Kind == yaml.SequenceNode }

// Decode reads the node into a Go value on top of its present value: fields that the node does not
// name keep their value. It reports whether everything was read without a mistake.
func (n *Node) Decode(into any) bool {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic("strict: decode into a non-pointer")
	}
	before := n.dec.mistakes
	n.dec.value(n, v.Elem())
	return n.dec.mistakes == before
}

// Items returns the elements of a list.
func (n *Node) Items() []*Node {
	if !n.List() {
		return nil
	}
	items := make([]*Node, len(n.yaml.Content))
	for i, c := range n.yaml.Content {
		items[i] = n.dec.at(c, n, "", i)
	}
	return items
}

// Each iterates over a list and the values that were decoded from it in parallel. It stops at the
// end of the shorter one: a list that was refused has places without values.
func Each[T any](list *Node, values []T, do func(at *Node, v *T)) {
	items := list.Items()
	for i := range min(len(items), len(values)) {
		do(items[i], &values[i])
	}
}

// A Pair is one key of a mapping with its value.
type Pair struct {
	Key   string
	Value *Node
	name  *Node // the key's own place, for mistakes in the key
}

// Errorf reports a mistake in the key itself.
func (p Pair) Errorf(format string, args ...any) { p.name.Errorf(format, args...) }

// Pairs returns the keys of a mapping in file order. It leaves out keys that are not words; those
// were reported when the file was parsed.
func (n *Node) Pairs() []Pair {
	if !n.Mapping() {
		return nil
	}
	pairs := make([]Pair, 0, len(n.yaml.Content)/2)
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		k, v := n.yaml.Content[i], n.yaml.Content[i+1]
		if isWord(k) {
			pairs = append(pairs, Pair{Key: k.Value, Value: n.dec.at(v, n, k.Value, 0), name: n.dec.at(k, n, k.Value, 0)})
		}
	}
	return pairs
}

// Child returns the node below the given keys. If it does not exist, the result has the place of
// its deepest existing parent, so that a mistake about an absent field points there. Its path names
// the requested field.
func (n *Node) Child(keys ...string) *Node {
	at := n
	for _, key := range keys {
		at = at.child(key)
	}
	return at
}

// child returns the first of two equal keys, which is the one that is decoded.
func (n *Node) child(key string) *Node {
	var here, under *Node
	if value := n.own(key); value != nil {
		here = n.dec.at(value, n, key, 0)
	}
	if n.under != nil && n.under.Has(key) {
		under = n.under.child(key)
	}
	switch {
	case here != nil && under != nil:
		return here.Over(under)
	case here != nil:
		return here
	case under != nil:
		return under
	}
	return &Node{yaml: &yaml.Node{Line: n.yaml.Line, Column: n.yaml.Column}, parent: n, key: key, dec: n.dec}
}

// Has reports whether a mapping has the key.
func (n *Node) Has(key string) bool {
	return n.own(key) != nil || n.under != nil && n.under.Has(key)
}

// own returns the value under the key in the node's own mapping, or nil.
func (n *Node) own(key string) *yaml.Node {
	if !n.Mapping() {
		return nil
	}
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		if k := n.yaml.Content[i]; k.Value == key && isWord(k) {
			return n.yaml.Content[i+1]
		}
	}
	return nil
}

// maxKey is how much of a key a path shows.
const maxKey = 80

// Path returns the field's name from the top of the file, such as rules[2].gates. It is computed on
// demand, because a file has many more places than mistakes.
func (n *Node) Path() string {
	var steps []string
	for at := n; at.parent != nil; at = at.parent {
		switch {
		case at.key == "":
			steps = append(steps, "["+strconv.Itoa(at.index)+"]")
		case at.parent.parent == nil:
			steps = append(steps, printable(at.key))
		default:
			steps = append(steps, "."+printable(at.key))
		}
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

// printable keeps a message on one line, whatever a key contains.
func printable(key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	return shorten(key, maxKey)
}
