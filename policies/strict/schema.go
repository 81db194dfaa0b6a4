package strict

import (
	"bytes"
	"encoding/json"
	"reflect"

	"gopkg.in/yaml.v3"
)

// A Schemer says what an editor should accept for a type that reads itself.
type Schemer interface {
	JSONSchema() map[string]any
}

var schemerType = reflect.TypeFor[Schemer]()

// Schema returns the JSON Schema (draft 2020-12) of the YAML that Decode reads into values of v's
// type, with an address as its id, or without one. It is made from the same struct tags as the decoder, so that an editor and the linter
// cannot disagree on a name.
func Schema(id, title string, v any) ([]byte, error) {
	s := schemaOf(reflect.TypeOf(v))
	if id != "" {
		s["$id"] = id
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // people read ">= 2" too
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return text.Bytes(), err
}

func schemaOf(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return optional(t)
	}
	if reflect.PointerTo(t).Implements(schemerType) {
		return reflect.New(t).Interface().(Schemer).JSONSchema()
	}
	switch t.Kind() {
	case reflect.Struct:
		return schemaOfStruct(t)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	panic("strict: no schema for " + t.String())
}

// optional returns the schema of what decoder.pointer reads.
func optional(t reflect.Type) map[string]any {
	nothing := []any{nil}
	if removable(t) {
		nothing = []any{none, nil}
	}
	return map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"enum": nothing}}}
}

// MappingSchema returns the schema of the mapping that a type reads next to its short form.
func MappingSchema[T any]() map[string]any { return schemaOfStruct(reflect.TypeFor[T]()) }

func schemaOfStruct(t reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []string
	for _, f := range Fields(t) {
		p := schemaOf(f.Type)
		if text := f.Description(); text != "" {
			p["description"] = text
		}
		if f.Example != "" {
			p["examples"] = []any{exampleValue(f.Example)}
		}
		properties[f.Name] = p
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	return s
}

// exampleValue returns the value of an example in a file: a list, a mapping or a number, and
// otherwise a text, with the quotes that it needs.
func exampleValue(text string) any {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return text
	}
	root := doc.Content[0]
	if root.Style&yaml.FlowStyle == 0 && root.Tag != "!!int" && root.Tag != "!!float" && root.Tag != "!!bool" {
		return text
	}
	var v any
	if err := root.Decode(&v); err != nil {
		return text
	}
	return v
}
