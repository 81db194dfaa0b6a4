package strict

import (
	"reflect"
	"strings"
)

// A Field is one key that a struct reads: its name from the yaml tag, whether
// it must be there (required:"true"), what it is for (doc:"…", which the schema
// shows) and an example of its value (eg:"…").
type Field struct {
	Name, Doc, Example string
	Required           bool
	Type               reflect.Type
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

func eachField(v reflect.Value, do func(Field, reflect.Value)) {
	walkFields(v.Type(), func(f Field, index []int) { do(f, v.FieldByIndex(index)) })
}

func walkFields(t reflect.Type, do func(Field, []int)) {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !sf.IsExported() {
			continue
		}
		do(Field{
			Name: name, Doc: sf.Tag.Get("doc"), Example: sf.Tag.Get("eg"),
			Required: sf.Tag.Get("required") == "true", Type: sf.Type,
		}, sf.Index)
	}
}
