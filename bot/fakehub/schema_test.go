package fakehub_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const openAPIVersion = "23.0.2" // as in testdata/fetch-openapi.sh

// A description is GitHub's published API description.
type description struct {
	root map[string]any
}

func loadDescription(t *testing.T) *description {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache")
	}
	path := filepath.Join(cache, "kernelgate", "octokit-openapi-"+openAPIVersion, "api.github.com.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		const remedy = "GitHub's API description is not here; run bot/fakehub/testdata/fetch-openapi.sh"
		if os.Getenv("CI") == "true" {
			t.Fatal(remedy)
		}
		t.Skip(remedy)
	}
	d := &description{}
	if err := json.Unmarshal(raw, &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at walks down by keys; nil where there is nothing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func (d *description) resolve(schema any) map[string]any {
	m, _ := schema.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		next, _ := at(d.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).(map[string]any)
		m = next
	}
}

// check lists what is wrong with a value: missing required fields, wrong types,
// nulls where none may be, words that are not on the list.
func (d *description) check(schema, value any, where string) []string {
	s := d.resolve(schema)
	if s == nil {
		return nil
	}
	var wrong []string
	for _, part := range list(s["allOf"]) {
		wrong = append(wrong, d.check(part, value, where)...)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if choices := list(s[key]); len(choices) > 0 && !(value == nil && s["nullable"] == true) {
			wrong = append(wrong, d.checkAny(choices, value, where)...)
		}
	}
	if value == nil {
		if s["type"] != nil && s["nullable"] != true {
			wrong = append(wrong, where+" is null")
		}
		return wrong
	}
	if kind, _ := s["type"].(string); kind != "" && !isKind(kind, value) {
		return append(wrong, fmt.Sprintf("%s is a %T, want %s", where, value, kind))
	}
	if enum := list(s["enum"]); len(enum) > 0 && !slices.Contains(enum, value) {
		wrong = append(wrong, fmt.Sprintf("%s is %v, want one of %v", where, value, enum))
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range list(s["required"]) {
			if _, ok := v[name.(string)]; !ok {
				wrong = append(wrong, where+"."+name.(string)+" is missing")
			}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, field := range v {
			if property, ok := properties[name]; ok {
				wrong = append(wrong, d.check(property, field, where+"."+name)...)
			}
		}
	case []any:
		for i, item := range v {
			wrong = append(wrong, d.check(s["items"], item, fmt.Sprintf("%s[%d]", where, i))...)
		}
	}
	return wrong
}

// checkAny takes the choice with the fewest complaints.
func (d *description) checkAny(choices []any, value any, where string) []string {
	var least []string
	for i, c := range choices {
		wrong := d.check(c, value, where)
		if len(wrong) == 0 {
			return nil
		}
		if i == 0 || len(wrong) < len(least) {
			least = wrong
		}
	}
	return least
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func isKind(kind string, value any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// operation finds the description's path for a request's.
func (d *description) operation(method, path string) (string, map[string]any) {
	got := strings.Split(strings.Trim(path, "/"), "/")
	best, bestLiteral := "", -1
	paths, _ := d.root["paths"].(map[string]any)
	for template, operations := range paths {
		want := strings.Split(strings.Trim(template, "/"), "/")
		if len(want) != len(got) || at(operations, strings.ToLower(method)) == nil {
			continue
		}
		literal := 0
		for i, w := range want {
			if strings.HasPrefix(w, "{") {
				continue
			}
			if w != got[i] {
				literal = -1
				break
			}
			literal++
		}
		if literal > bestLiteral {
			best, bestLiteral = template, literal
		}
	}
	if best == "" {
		return "", nil
	}
	operation, _ := at(paths, best, strings.ToLower(method)).(map[string]any)
	return best, operation
}
