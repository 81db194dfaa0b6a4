// Package schema describes in JSON Schema what encoding/json writes of Go types. It reads no JSON
// and checks none.
package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A Writer makes the schemas of types. Every struct becomes a definition, for some contain
// themselves. The zero value is ready to use.
type Writer struct {
	// Refs is what stands before the name of a definition in a reference; "" means #/$defs/.
	Refs string
	// Qualified puts the package before the name of a type: gates.Verdict.
	Qualified bool
	// Enums has the values of types that have a fixed set of them.
	Enums map[reflect.Type][]string

	Definitions map[string]any // by name
	types       map[string]reflect.Type
}

// Of returns the schema of a type.
func (w *Writer) Of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return w.Of(t.Elem())
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Struct:
		w.define(t)
		refs := w.Refs
		if refs == "" {
			refs = "#/$defs/"
		}
		return map[string]any{"$ref": refs + w.nameOf(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": w.Of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.Of(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		if values := w.Enums[t]; values != nil {
			return map[string]any{"type": "string", "enum": values}
		}
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

func (w *Writer) nameOf(t reflect.Type) string {
	if !w.Qualified {
		return t.Name()
	}
	return t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:] + "." + t.Name()
}

func (w *Writer) define(t reflect.Type) {
	name := w.nameOf(t)
	if known, ok := w.types[name]; ok {
		if known != t {
			panic("two types are called " + name)
		}
		return
	}
	if w.types == nil {
		w.types, w.Definitions = map[string]reflect.Type{}, map[string]any{}
	}
	w.types[name] = t
	properties, required := map[string]any{}, []string{}
	w.fields(t, properties, &required)
	slices.Sort(required)
	w.Definitions[name] = map[string]any{"type": "object", "properties": properties, "required": slices.Compact(required)}
}

// fields adds the fields of a struct. Those that it embeds come first, for its own replace them.
func (w *Writer) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous || name != "" {
			continue
		}
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		w.fields(embedded, properties, required)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		w.field(f, name, strings.Contains(options, "omit"), properties, required)
	}
}

// field adds one property, or replaces it.
func (w *Writer) field(f reflect.StructField, name string, optional bool, properties map[string]any, required *[]string) {
	s := w.Of(f.Type)
	if doc := f.Tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	properties[name] = s
	*required = slices.DeleteFunc(*required, func(other string) bool { return other == name })
	if optional {
		return
	}
	*required = append(*required, name)
	if slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer}, f.Type.Kind()) {
		properties[name] = map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	}
}
