package strict

import "reflect"

// A Key is a field and its place in a file: gates.performance.pairs, rules[].name (in every element
// of a list), variants.NAME.source (under names that the author chooses).
type Key struct {
	Path string
	Field
	// Below is the path of the mapping that the value is or contains, and empty if there is none.
	// It is not below Path if the same mapping occurred earlier.
	Below string
}

// Keys lists everything that a file for v's type can have, mapping by mapping. A mapping that may
// occur at several places is listed at the first. Keys that a file must never have are left out.
func Keys(v any) []Key {
	w := &keyWalk{first: map[reflect.Type]string{}}
	w.mapping(reflect.TypeOf(v), "")
	for i, k := range w.keys {
		if inner, _ := mappingIn(k.Type); inner != nil {
			w.keys[i].Below = w.first[inner]
		}
	}
	return w.keys
}

type keyWalk struct {
	keys  []Key
	first map[reflect.Type]string
}

func (w *keyWalk) mapping(t reflect.Type, path string) {
	w.first[t] = path
	if path != "" {
		path += "."
	}
	var fields []Field
	for _, f := range Fields(t) {
		if _, refused := schemaOf(f.Type)["not"]; !refused {
			fields = append(fields, f)
			w.keys = append(w.keys, Key{Path: path + f.Name, Field: f})
		}
	}
	for _, f := range fields {
		inner, step := mappingIn(f.Type)
		if _, seen := w.first[inner]; inner != nil && !seen {
			w.mapping(inner, path+f.Name+step)
		}
	}
}

// mappingIn returns the struct that a value of the type is, or that it contains one step down, or
// nil if there is none.
func mappingIn(t reflect.Type) (inner reflect.Type, step string) {
	t = pointed(t)
	switch t.Kind() {
	case reflect.Slice:
		step = "[]"
		if schemaOf(t)["type"] == "object" { // a mapping that keeps its order
			step = ".NAME"
		}
		t = pointed(t.Elem())
	case reflect.Map:
		step, t = ".NAME", pointed(t.Elem())
	}
	if t.Kind() != reflect.Struct || len(Fields(t)) == 0 {
		return nil, ""
	}
	return t, step
}

func pointed(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
