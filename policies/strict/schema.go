package strict

import (
	"encoding/json"
	"reflect"
)

// A Schemer says what an editor should accept for a type that reads itself.
type Schemer interface {
	JSONSchema() map[string]any
}

var schemerType = reflect.TypeFor[Schemer]()

// Schema is the JSON Schema (draft 2020-12) of the YAML that Decode reads into
// values of v's type. It is made from the same struct tags as the decoder, so
// that an editor and the linter cannot disagree on a name.
func Schema(title string, v any) ([]byte, error) {
	s := schemaOf(reflect.TypeOf(v))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

func schemaOf(t reflect.Type) map[string]any {
	if reflect.PointerTo(t).Implements(schemerType) {
		return reflect.New(t).Interface().(Schemer).JSONSchema()
	}
	switch t.Kind() {
	case reflect.Pointer:
		s := schemaOf(t.Elem())
		if t.Elem().Kind() == reflect.Struct && s["type"] == "object" {
			return map[string]any{"anyOf": []any{s, map[string]any{"enum": []any{"none", nil}}}}
		}
		return s
	case reflect.Struct:
		properties := map[string]any{}
		var required []string
		for _, f := range Fields(t) {
			p := schemaOf(f.Type)
			if f.Doc != "" {
				p["description"] = f.Doc
			}
			if f.Example != "" {
				p["examples"] = []any{f.Example}
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
