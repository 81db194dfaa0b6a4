package facts

import (
	"reflect"
	"strings"
	"unicode"
)

// A Detail is a fact with its sentence, as a stored verdict has it.
type Detail struct {
	Kind  string `json:"kind"`            // the fact's type, such as slow-tail
	Shape string `json:"shape,omitempty"` // that it is about, as people read it
	Text  string `json:"text"`
}

// The kinds of details that a table of a report shows, or that its headline continues.
const (
	DetailKindsApart = "kinds-apart"
	DetailSlowKind   = "slow-kind"
	DetailCapped     = "capped"
)

// Details writes every fact.
func Details(all []Fact) []Detail {
	var details []Detail
	for _, f := range all {
		d := Detail{Text: f.Sentence()}
		switch about := f.(type) {
		case OfShape:
			d.Shape, f = about.Shape, about.Fact
		case KindsApart:
			d.Shape = about.Shape
		case Detectable:
			d.Shape = about.Shape
		case LostBy:
			d.Shape = about.Shape
		}
		d.Kind = kind(f)
		details = append(details, d)
	}
	return details
}

// kind is the name of a fact's type in lower case, with hyphens.
func kind(f Fact) string {
	var b strings.Builder
	for i, r := range reflect.TypeOf(f).Name() {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
