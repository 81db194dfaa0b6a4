package facts

import "strings"

// An ExistingTimed is outputs of timed launches that are wrong as the baseline's are, in a few words.
type ExistingTimed struct{ Shapes []string }

func (e ExistingTimed) Sentence() string {
	return "timed outputs on " + strings.Join(e.Shapes, ", ") + " are wrong as before"
}
