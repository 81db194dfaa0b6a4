package strict

import (
	"reflect"
	"slices"
	"strings"
	"sync"
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
	switch words, _ := f.prose(f.Default); {
	case strings.HasPrefix(words, "required"):
		text += " R" + words[1:] + "."
	case words != "":
		text += " Default: " + words + "."
	}
	if words, _ := f.prose(f.Bounds); words != "" {
		text += " Bounds: " + words + "."
	}
	if f.Half != "" {
		text += " Part of the " + f.Half + "."
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
func Fields(t reflect.Type) []Field { return slices.Clone(keysOf(t).fields) }

// keys is the fields of a struct type in their order, their names, where each is, and those that must be there.
type keys struct {
	fields   []Field
	names    []string
	index    map[string][]int
	required []Field
}

// types is the keys of the types that were read, by type. What tags say does not change while a program runs, and to
// take them apart costs more than all else that is done with a value.
var types sync.Map

// keysOf looks through a type once. Nobody changes what it returns.
func keysOf(t reflect.Type) *keys {
	if k, ok := types.Load(t); ok {
		return k.(*keys)
	}
	k := &keys{index: map[string][]int{}}
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !sf.IsExported() {
			continue
		}
		f := Field{
			Name: name, Doc: sf.Tag.Get("doc"), Example: sf.Tag.Get("eg"), Default: sf.Tag.Get("default"), Bounds: sf.Tag.Get("bounds"), Half: sf.Tag.Get("half"),
			Required: sf.Tag.Get("required") == "true", Type: sf.Type,
		}
		k.fields, k.names = append(k.fields, f), append(k.names, name)
		k.index[name] = sf.Index
		if f.Required {
			k.required = append(k.required, f)
		}
	}
	types.Store(t, k)
	return k
}
