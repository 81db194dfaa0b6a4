package gates

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A schemaWriter makes a JSON Schema of what encoding/json writes. Every struct is a definition, for some contain themselves.
type schemaWriter struct {
	definitions map[string]any
	types       map[string]reflect.Type
}

func (w *schemaWriter) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return w.of(t.Elem())
	}
	switch t.Kind() {
	case reflect.Struct:
		w.define(t)
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": w.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func (w *schemaWriter) define(t reflect.Type) {
	if known, ok := w.types[t.Name()]; ok {
		if known != t {
			panic("two types are called " + t.Name())
		}
		return
	}
	w.types[t.Name()] = t
	properties, required := map[string]any{}, []string{}
	w.fields(t, properties, &required)
	slices.Sort(required)
	w.definitions[t.Name()] = map[string]any{"type": "object", "properties": properties, "required": required}
}

func (w *schemaWriter) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			w.fields(f.Type, properties, required)
		case name == "-" || !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			properties[name] = w.of(f.Type)
			if strings.Contains(options, "omit") {
				continue
			}
			*required = append(*required, name)
			if slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer}, f.Type.Kind()) {
				properties[name] = map[string]any{"anyOf": []any{w.of(f.Type), map[string]any{"type": "null"}}}
			}
		}
	}
}

// The schema of verdict.json is for programs that read verdicts. A later version may add fields, so it refuses none.
func TestVerdictSchema(t *testing.T) {
	w := schemaWriter{definitions: map[string]any{}, types: map[string]reflect.Type{}}
	top := w.of(reflect.TypeFor[Verdict]())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = "https://raw.githubusercontent.com/kernelgate/kernelgate/main/gates/verdict.schema.json"
	top["title"] = "kernelgate verdict (" + VerdictSchema + ")"
	top["$defs"] = w.definitions
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(top); err != nil {
		t.Fatal(err)
	}
	const file = "verdict.schema.json"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
	conforms(t, w.definitions)
}

// conforms checks that a verdict with a failed and a passed gate has only what the schema names, and all that it requires.
func conforms(t *testing.T, definitions map[string]any) {
	t.Helper()
	p := parsePolicy(t, "version: 1\ngates:\n  correctness: {shapes: [mission], seeds: [0], norm_error: '<= 1%'}\nrules:\n  - name: default\n")
	text, err := json.Marshal(Judge(p, "test.yaml", evidence("mission")))
	if err != nil {
		t.Fatal(err)
	}
	var verdict map[string]any
	if err := json.Unmarshal(text, &verdict); err != nil {
		t.Fatal(err)
	}
	schema := definitions["Verdict"].(map[string]any)
	for name := range verdict {
		if schema["properties"].(map[string]any)[name] == nil {
			t.Errorf("the schema does not know %s", name)
		}
	}
	for _, name := range schema["required"].([]string) {
		if _, ok := verdict[name]; !ok {
			t.Errorf("the verdict has no %s", name)
		}
	}
}
