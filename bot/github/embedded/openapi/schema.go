package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// at follows keys into nested maps and returns nil if one is missing.
func at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func (d *Description) resolve(schema any) map[string]any {
	m, _ := schema.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		steps := append(strings.Split(strings.TrimPrefix(ref, "#/components/"), "/"), "")
		m, _ = d.components[steps[0]].at(steps[1]).(map[string]any)
	}
}

// check returns the violations of a value: missing required fields, wrong types, nulls that are not
// allowed, texts that are not in the enumeration, exceeded limits.
func (d *Description) check(schema, value any, where string) []string {
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
	case string:
		wrong = append(wrong, size(s["maxLength"], utf8.RuneCountInString(v), where)...)
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
		wrong = append(wrong, size(s["maxItems"], len(v), where)...)
		for i, item := range v {
			wrong = append(wrong, d.check(s["items"], item, fmt.Sprintf("%s[%d]", where, i))...)
		}
	}
	return wrong
}

func size(most any, n int, where string) []string {
	if m, ok := most.(float64); ok && n > int(m) {
		return []string{fmt.Sprintf("%s has %d, at most %d are allowed", where, n, int(m))}
	}
	return nil
}

// checkAny returns the violations of the choice that has the fewest.
func (d *Description) checkAny(choices []any, value any, where string) []string {
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

// strangers returns the fields of a value that no part of the schema names.
func (d *Description) strangers(schema, value any, where string) []string {
	s := d.resolve(schema)
	var wrong []string
	switch v := value.(type) {
	case map[string]any:
		properties := d.properties(s)
		for name, field := range v {
			property, ok := properties[name]
			if !ok && len(properties) > 0 {
				wrong = append(wrong, where+"."+name+" is not GitHub's")
			}
			wrong = append(wrong, d.strangers(property, field, where+"."+name)...)
		}
	case []any:
		for i, item := range v {
			wrong = append(wrong, d.strangers(s["items"], item, fmt.Sprintf("%s[%d]", where, i))...)
		}
	}
	return wrong
}

// properties returns the properties of a schema and of all its parts.
func (d *Description) properties(s map[string]any) map[string]any {
	out := map[string]any{}
	own, _ := s["properties"].(map[string]any)
	maps.Copy(out, own)
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range list(s[key]) {
			maps.Copy(out, d.properties(d.resolve(part)))
		}
	}
	return out
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
