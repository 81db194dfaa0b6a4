package strict

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Reference is Schema for people, in Markdown: a table of the keys of every mapping, each with its
// type, its default, its purpose and an example. The keys of a file's halves are separate, each
// under the text about its half.
func Reference(v any, halves map[string]string) string {
	var b strings.Builder
	mapping, half := "\x00", ""
	introduced := map[string]string{} // the text about a mapping where it is a key itself
	for _, k := range Keys(v) {
		if _, told := introduced[k.Below]; k.Below != "" && !told {
			introduced[k.Below] = k.Doc
		}
		dot := strings.LastIndex(k.Path, ".")
		at, nested := k.Path[:max(dot, 0)], dot >= 0
		if at != mapping || at == "" && k.Half != half {
			title := "## The file"
			if at != "" {
				title = "## `" + at + "`\n\n" + introduced[at]
			} else if k.Half != "" {
				title += ": the " + k.Half + "\n\n" + halves[k.Half]
			}
			mapping, half = at, k.Half
			fmt.Fprintf(&b, "\n%s\n\n| key | takes | default | meaning | example |\n| --- | --- | --- | --- | --- |\n", strings.TrimSpace(title))
		}
		doc := k.Doc
		if nested && k.Half != "" {
			doc += " Part of the " + k.Half + "."
		}
		cells := []string{"`" + k.Name + "`", takes(k), defaulted(k.Field), doc, "`" + k.Name + ": " + k.WrittenExample() + "`"}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// defaulted says what applies if the key is left out.
func defaulted(f Field) string {
	switch words, prose := f.prose(f.Default); {
	case f.Required:
		return "required"
	case prose:
		return words
	case f.Default != "":
		return "`" + f.Default + "`"
	}
	return ""
}

// takes says what a value may be, and within which bounds.
func takes(k Key) string {
	text := kind(k.Type, false)
	if k.Below != "" {
		text = fmt.Sprintf("[%s](#%s)", text, anchor(k.Below))
	}
	if k.Bounds != "" {
		bounds, _ := k.prose(k.Bounds)
		text += ", " + bounds
	}
	return text
}

// unanchored matches the characters that GitHub removes from a heading's anchor.
var unanchored = regexp.MustCompile(`[^a-z0-9_-]`)

func anchor(heading string) string { return unanchored.ReplaceAllString(strings.ToLower(heading), "") }

// kind describes a type in words.
func kind(t reflect.Type, several bool) string {
	if t.Kind() == reflect.Pointer {
		if removable(t) && t.Elem().Kind() != reflect.Bool {
			return kind(t.Elem(), several) + ", or `none`"
		}
		return kind(t.Elem(), several)
	}
	s := schemaOf(t)
	if words := reflect.ValueOf(s["enum"]); words.IsValid() {
		var list []string
		for i := range words.Len() {
			list = append(list, fmt.Sprintf("`%v`", words.Index(i).Interface()))
		}
		return strings.Join(list, ", ")
	}
	if title, ok := s["title"].(string); ok {
		return plural(title, several)
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list of " + kind(t.Elem(), true)
	case reflect.Map:
		return "mapping of names to " + kind(t.Elem(), true)
	case reflect.Struct:
		return plural("mapping", several)
	}
	return plural(map[string]string{"boolean": "`true` or `false`", "integer": "whole number", "number": "number", "string": "text"}[s["type"].(string)], several)
}

func plural(noun string, several bool) string {
	if several {
		return noun + "s"
	}
	return noun
}

// WrittenExample returns the example as a file would have it: in quotes if YAML would not read it
// as a text.
func (f Field) WrittenExample() string {
	text, isText := exampleValue(f.Example).(string)
	if !isText {
		return f.Example
	}
	var pair map[string]any
	if err := yaml.Unmarshal([]byte("k: "+f.Example), &pair); err != nil || pair["k"] != text {
		return strconv.Quote(f.Example)
	}
	return f.Example
}
