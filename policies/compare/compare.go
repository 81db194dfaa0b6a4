// Package compare is how two versions of a gate's rules differ, and which way each
// difference goes. Packages policies and kernels hold their own against each other with
// it; who may let a difference pass is not its business.
package compare

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Direction is which way a difference goes.
type Direction string

const (
	// Tightens is a promise: no evidence that was deferred passes by it.
	Tightens Direction = "tightens"
	Loosens  Direction = "loosens"
	// Changes is of unknown direction, and to be taken for a loosening.
	Changes Direction = "changes"
)

// A Difference is one thing that the new rules ask otherwise than the old.
type Difference struct {
	Path      string    `json:"path"` // such as rules[default].gates.performance.target.speedup
	Old       string    `json:"old"`
	New       string    `json:"new"`
	Direction Direction `json:"direction"`
}

// Clipped is the difference with each of its texts cut to so many bytes, for people to read.
func (d Difference) Clipped(most int) Difference {
	for _, text := range []*string{&d.Path, &d.Old, &d.New} {
		if len(*text) > most {
			*text = strings.ToValidUTF8((*text)[:most], "") + "…"
		}
	}
	return d
}

// None stands for what is not there.
const None = "none"

// A List is differences in the order in which they were found.
type List []Difference

// Add notes a difference.
func (l *List) Add(path, old, new string, d Direction) {
	*l = append(*l, Difference{Path: path, Old: old, New: new, Direction: d})
}

// Way notes a difference by what the new rules are: at least as strict as the old, at most so,
// or neither. What is both is none.
func (l *List) Way(path, old, new string, least, most bool) {
	switch {
	case least && most:
	case least:
		l.Add(path, old, new, Tightens)
	case most:
		l.Add(path, old, new, Loosens)
	default:
		l.Add(path, old, new, Changes)
	}
}

// Loosens tells whether any of it may let something pass that was deferred.
func (l List) Loosens() bool {
	return slices.ContainsFunc(l, func(d Difference) bool { return d.Direction != Tightens })
}

// Unknown notes a difference of which nobody can say where it leads.
func (l *List) Unknown(path string, old, new any) {
	if reflect.DeepEqual(old, new) {
		return
	}
	was, is := text(old), text(new)
	if was == is {
		was, is = fmt.Sprintf("%q", old), fmt.Sprintf("%q", new)
	}
	l.Add(path, was, is, Changes)
}

// Less notes a figure of which less is stricter.
func Less[T cmp.Ordered](l *List, path string, old, new T) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new < old))
	}
}

// More notes a figure of which more is stricter.
func More[T cmp.Ordered](l *List, path string, old, new T) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new > old))
	}
}

// Limit notes a figure of which less is stricter and none is no limit.
func Limit[T cmp.Ordered](l *List, path string, old, new *T, comes Direction) {
	if Both(l, path, old, new, comes) {
		Less(l, path, *old, *new)
	}
}

// Both tells whether there are two to compare. It notes one that went, which loosens, and one
// that came.
func Both[T any](l *List, path string, old, new *T, comes Direction) bool {
	switch {
	case old == nil && new == nil:
	case old == nil:
		l.Add(path, None, text(*new), comes)
	case new == nil:
		l.Add(path, text(*old), None, Loosens)
	default:
		return true
	}
	return false
}

// Asked notes something that is stricter where it is asked.
func Asked(l *List, path string, old, new bool) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new))
	}
}

// Set notes a list of which every entry is one thing more that is asked, in whatever
// order.
func Set[T comparable](l *List, path string, old, new []T) {
	l.Way(path, text(old), text(new), holds(new, old), holds(old, new))
}

// Fewer notes a list of which fewer entries are milder, and of anything else, another order as well, nobody can say.
func Fewer[T comparable](l *List, path string, old, new []T) {
	if holds(old, new) && !holds(new, old) {
		l.Add(path, text(old), text(new), Loosens)
		return
	}
	l.Unknown(path, old, new)
}

func holds[T comparable](all, some []T) bool {
	return !slices.ContainsFunc(some, func(one T) bool { return !slices.Contains(all, one) })
}

func stricter(yes bool) Direction {
	if yes {
		return Tightens
	}
	return Loosens
}

// text is a value as people read it.
func text(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return fmt.Sprint(v)
	}
	if r.Len() == 0 {
		return None
	}
	words := make([]string, r.Len())
	for i := range words {
		words[i] = fmt.Sprint(r.Index(i))
	}
	return strings.Join(words, ", ")
}
