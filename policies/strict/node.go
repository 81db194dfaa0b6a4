package strict

import (
	"fmt"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
)

// A Node is one place in the file, with the path that leads to it. Types that
// check themselves (Unmarshaler, Validator) read it and report through it.
type Node struct {
	yaml  *yaml.Node
	path  string
	dec   *decoder
	under *Node // see Over
	dirty bool
}

// An Unmarshaler reads its own value from a node and reports what is wrong
// with it through Errorf.
type Unmarshaler interface {
	UnmarshalStrict(n *Node)
}

// A Validator looks at a value after its fields were read. Where a field has
// been refused, Clean is false and combinations of fields cannot be judged.
type Validator interface {
	ValidateStrict(n *Node)
}

// Errorf reports a mistake at this node.
func (n *Node) Errorf(format string, args ...any) {
	n.dec.report(Problem{
		Line: n.yaml.Line, Column: n.yaml.Column,
		Path: n.path, Message: fmt.Sprintf(format, args...),
	})
}

// Clean tells whether everything below the node was read without a mistake.
func (n *Node) Clean() bool { return !n.dirty }

// Over is this node laid over another: Child finds a field where it was last
// set, here or underneath.
func (n *Node) Over(under *Node) *Node {
	laid := *n
	laid.under = under
	return &laid
}

// Path is the field's name from the top of the file, such as rules[2].gates.
func (n *Node) Path() string { return n.path }

// Text is the scalar as it was written; ok is false where the node is a list
// or a mapping.
func (n *Node) Text() (text string, ok bool) {
	if n.yaml.Kind != yaml.ScalarNode {
		return "", false
	}
	return n.yaml.Value, true
}

// Null tells whether the value is absent (null, ~ or empty).
func (n *Node) Null() bool {
	return n.yaml.Kind == yaml.ScalarNode && n.yaml.Tag == "!!null"
}

// Mapping and List tell what the node is.
func (n *Node) Mapping() bool { return n.yaml.Kind == yaml.MappingNode }
func (n *Node) List() bool    { return n.yaml.Kind == yaml.SequenceNode }

// Decode reads the node into a Go value on top of what the value holds
// already: fields that the node does not name keep their value.
func (n *Node) Decode(into any) { n.dec.decodeInto(n, into) }

// Items are the elements of a list.
func (n *Node) Items() []*Node {
	if !n.List() {
		return nil
	}
	items := make([]*Node, len(n.yaml.Content))
	for i, c := range n.yaml.Content {
		items[i] = n.dec.at(c, n.path+"["+strconv.Itoa(i)+"]")
	}
	return items
}

// A Pair is one key of a mapping with its value.
type Pair struct {
	Key   string
	Value *Node
	name  *Node // the key's own place, for mistakes in the key
}

// Errorf reports a mistake in the key itself.
func (p Pair) Errorf(format string, args ...any) { p.name.Errorf(format, args...) }

// Pairs are the keys of a mapping in file order.
func (n *Node) Pairs() []Pair {
	if !n.Mapping() {
		return nil
	}
	var pairs []Pair
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		k, v := n.yaml.Content[i], n.yaml.Content[i+1]
		path := join(n.path, k.Value)
		pairs = append(pairs, Pair{Key: k.Value, Value: n.dec.at(v, path), name: n.dec.at(k, path)})
	}
	return pairs
}

// Child is the node below the given keys. Where it does not exist, it stands at
// the deepest place on the way that does, so that a mistake about an absent
// field points at its parent; its path names the field asked for.
func (n *Node) Child(keys ...string) *Node {
	at := n
	for _, key := range keys {
		at = at.child(key)
	}
	return at
}

func (n *Node) child(key string) *Node {
	var here, under *Node
	for _, p := range n.Pairs() {
		if p.Key == key {
			here = p.Value
		}
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
	return &Node{yaml: &yaml.Node{Line: n.yaml.Line, Column: n.yaml.Column}, path: join(n.path, key), dec: n.dec}
}

// Has tells whether a mapping names the key.
func (n *Node) Has(key string) bool {
	return slices.ContainsFunc(n.Pairs(), func(p Pair) bool { return p.Key == key }) || n.under != nil && n.under.Has(key)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
