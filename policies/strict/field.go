package strict

import (
	"reflect"
	"strings"
)

// A Field is one key that a struct reads: its name from the yaml tag, whether
// it must be there (required:"true"), what it is for (doc:"…", which the schema
// shows), an example of its value (eg:"…"), what holds where it is left out
// (default:"…") and what its value must lie in (bounds:"4 to 100"). A default or
// bounds that are no values stand in parentheses: default:"(all shapes)". Where two people
// answer for a file, half:"problem" or half:"implementation" says whose it is: see [Join].
type Field struct {
	Name, Doc, Example, Default, Bounds, Half string
	Required                                  bool
	Type                                      reflect.Type
}

// prose takes the parentheses from words that no program reads.
func (Field) prose(text string) (words string, prose bool) {
	inner, open := strings.CutPrefix(text, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !open || !closed {
		return text, false
	}
	return inner, true
}

// Description is all that an editor can show of the field.
func (f Field) Description() string {
	text := f.Doc
	if words, _ := f.prose(f.Default); words != "" {
		text += " Default " + words + "."
	}
	if words, _ := f.prose(f.Bounds); words != "" {
		text += " Bounds: " + words + "."
	}
	if f.Half != "" {
		text += " Of the " + f.Half + "."
	}
	return strings.TrimSpace(text)
}

func (f Field) hint() string {
	if f.Example == "" {
		return ""
	}
	return " (write e.g. " + f.Name + ": " + f.Example + ")"
}

// Fields lists the keys of a struct type, embedded structs included.
func Fields(t reflect.Type) []Field {
	var fields []Field
	walkFields(t, func(f Field, _ []int) { fields = append(fields, f) })
	return fields
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range Fields(t) {
		names = append(names, f.Name)
	}
	return names
}

func walkFields(t reflect.Type, do func(Field, []int)) {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !sf.IsExported() {
			continue
		}
		do(Field{
			Name: name, Doc: sf.Tag.Get("doc"), Example: sf.Tag.Get("eg"), Default: sf.Tag.Get("default"), Bounds: sf.Tag.Get("bounds"), Half: sf.Tag.Get("half"),
			Required: sf.Tag.Get("required") == "true", Type: sf.Type,
		}, sf.Index)
	}
}
