package strict

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A Field is one key that a struct reads. The yaml tag has its name, required:"true" makes it
// mandatory, doc:"…" says what it is for (the schema shows it), eg:"…" is an example of its value,
// default:"…" is its value if it is left out, and bounds:"4 to 100" is the range of its value. A
// default or bounds that are not values stand in parentheses: default:"(all shapes)". If two
// parties are responsible for a file, half:"problem" or half:"implementation" says who owns the
// field: see [Join].
type Field struct {
	Name, Doc, Example, Default, Bounds, Half string
	Required                                  bool
	Type                                      reflect.Type
}

// prose removes the parentheses around words that no program reads.
func (Field) prose(text string) (words string, prose bool) {
	inner, open := strings.CutPrefix(text, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !open || !closed {
		return text, false
	}
	return inner, true
}

// Description returns everything that an editor can show about the field.
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

// keys holds the fields of a struct type in their order, their names, the index of each, and those
// that are required.
type keys struct {
	fields   []Field
	names    []string
	index    map[string][]int
	required []Field
	// elsewhere has the names that other tools give to fields, from the tag of that name.
	elsewhere map[string]string
}

// types caches the keys of types. Tags do not change while a program runs, and parsing them costs
// more than everything else that is done with a value.
var types sync.Map

// keysOf examines a type once. Callers must not change the result.
func keysOf(t reflect.Type) *keys {
	if k, ok := types.Load(t); ok {
		return k.(*keys)
	}
	k := &keys{index: map[string][]int{}, elsewhere: map[string]string{}}
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
		for _, other := range strings.Fields(sf.Tag.Get("elsewhere")) {
			k.elsewhere[other] = name
		}
		if f.Required {
			k.required = append(k.required, f)
		}
	}
	types.Store(t, k)
	return k
}
