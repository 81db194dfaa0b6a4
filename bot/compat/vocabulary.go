package compat

import (
	"fmt"
	"reflect"
	"slices"
)

// A Vocabulary is the types of events that a package stores.
type Vocabulary[E any] struct {
	KindOf func(E) string // the word under which an event is stored
	About  string         // what events are about, for messages; "" for changes
	All    []E            // a zero value of each type
}

// Decode reads a stored event. It refuses kinds and fields that this program does not know (IsUnknown).
func (v Vocabulary[E]) Decode(from Writer, kind string, data []byte) (event E, err error) {
	about := ""
	if v.About != "" {
		about = " about " + v.About
	}
	i := slices.IndexFunc(v.All, func(e E) bool { return v.KindOf(e) == kind })
	if i < 0 {
		return event, from.Unknown(fmt.Sprintf("an event of the kind %q%s", kind, about))
	}
	into := reflect.New(reflect.TypeOf(v.All[i]))
	if err := from.Decode(kind, data, into.Interface()); err != nil {
		return event, fmt.Errorf("reading a stored %s event%s: %w", kind, about, err)
	}
	return into.Elem().Interface().(E), nil
}
