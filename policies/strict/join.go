package strict

import (
	"cmp"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// The halves of a file for which two parties are responsible, as the tag half says for each field.
const (
	HalfProblem        = "problem"
	HalfImplementation = "implementation"
)

// Join reads one value from two files: the fields of the implementation from the second, and all
// others from the first. The elements of a list that have a name are joined one by one if their
// type has fields of the implementation. Kept fields come from the first file, whatever their tags
// say.
//
// Mistakes are reported at places in the second file, which its author can fix. A mistake that
// comes from the first file is reported where the second has the same field.
func Join(file string, problem, implementation []byte, into any, kept ...string) error {
	d := newDecoder(file)
	lower, upper := d.parse(problem), d.parse(implementation)
	if lower == nil || upper == nil {
		return d.err()
	}
	root := upper
	if lower.Kind == yaml.MappingNode && upper.Kind == yaml.MappingNode {
		root = joined(reflect.TypeOf(into).Elem(), lower, upper, kept)
	}
	at := d.at(root, nil, "", 0)
	d.survey(root, at, 0)
	at.Decode(into)
	return d.err()
}

// PlaceOf returns the place of a field in a file, or of its nearest existing parent.
func PlaceOf(data []byte, path ...string) (line, column int) {
	d := newDecoder("")
	root := d.parse(data)
	if root == nil {
		return 1, 1
	}
	at := d.at(root, nil, "", 0).Child(path...).yaml
	return max(at.Line, 1), max(at.Column, 1)
}

// joined takes each key of a struct's mapping from the file that it belongs to.
func joined(t reflect.Type, lower, upper *yaml.Node, kept []string) *yaml.Node {
	fields := map[string]Field{}
	for _, f := range keysOf(t).fields {
		fields[f.Name] = f
	}
	implementation := func(key *yaml.Node) bool {
		return fields[key.Value].Half == HalfImplementation && !slices.Contains(kept, key.Value)
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: upper.Tag, Line: upper.Line, Column: upper.Column}
	eachPair(lower, func(key, value *yaml.Node) {
		if implementation(key) {
			return
		}
		place, beside := pairOf(upper, key.Value)
		at := placed(key, place, upper)
		if item := joinedType(fields[key.Value].Type); item != nil {
			value = joinedItems(item, followed(value), followed(beside), at)
		} else {
			value = placed(value, beside, at)
		}
		all.Content = append(all.Content, at, value)
	})
	eachPair(upper, func(key, value *yaml.Node) {
		if implementation(key) {
			all.Content = append(all.Content, key, value)
		}
	})
	return all
}

// joinedItems returns the first file's list. Elements of the second file with the same name
// contribute their part of the implementation; everything else in the second list is ignored.
func joinedItems(t reflect.Type, lower, upper, above *yaml.Node) *yaml.Node {
	if lower.Kind != yaml.SequenceNode {
		return placed(lower, upper, above)
	}
	list := *placed(lower, upper, above)
	list.Content = nil
	for _, item := range lower.Content {
		item = followed(item)
		if beside := itemNamed(upper, nameOf(item)); beside != nil {
			list.Content = append(list.Content, joined(t, item, beside, nil))
		} else {
			list.Content = append(list.Content, placed(item, nil, &list))
		}
	}
	return &list
}

func itemNamed(list *yaml.Node, name string) *yaml.Node {
	if list == nil || list.Kind != yaml.SequenceNode || name == "" {
		return nil
	}
	for _, item := range list.Content {
		if item = followed(item); item.Kind == yaml.MappingNode && nameOf(item) == name {
			return item
		}
	}
	return nil
}

func nameOf(item *yaml.Node) string {
	if _, value := pairOf(item, "name"); value != nil {
		return followed(value).Value
	}
	return ""
}

// placed returns a deep copy of a node that has the position of another node. Parts that the other
// node does not have get the position of their nearest existing parent.
func placed(n, where, above *yaml.Node) *yaml.Node {
	where = cmp.Or(where, above)
	c := *n
	c.Line, c.Column, c.Content = where.Line, where.Column, nil
	inside := followed(where)
	switch n.Kind {
	case yaml.MappingNode:
		eachPair(n, func(key, value *yaml.Node) {
			place, beside := pairOf(inside, key.Value)
			at := placed(key, place, &c)
			c.Content = append(c.Content, at, placed(value, beside, at))
		})
	case yaml.SequenceNode:
		for i, item := range n.Content {
			var beside *yaml.Node
			if inside.Kind == yaml.SequenceNode && i < len(inside.Content) {
				beside = inside.Content[i]
			}
			c.Content = append(c.Content, placed(item, beside, &c))
		}
	}
	return &c
}

// followed returns the target of an alias.
func followed(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func eachPair(n *yaml.Node, do func(key, value *yaml.Node)) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		do(n.Content[i], n.Content[i+1])
	}
}

func pairOf(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n != nil {
		eachPair(n, func(k, v *yaml.Node) {
			if key == nil && k.Value == name {
				key, value = k, v
			}
		})
	}
	return key, value
}

// joinedType returns the struct type of a list's elements if it has fields of either half, and nil
// otherwise.
func joinedType(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct ||
		!slices.ContainsFunc(keysOf(t.Elem()).fields, func(f Field) bool { return f.Half != "" }) {
		return nil
	}
	return t.Elem()
}
