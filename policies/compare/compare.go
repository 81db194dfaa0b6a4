// Package compare says how two versions of a gate's rules differ, and in which direction each
// difference goes. Packages policy and manifest compare their values with it; the bot asks for an
// approval if a change may loosen the rules. The package does not decide who may approve a
// difference.
package compare

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Direction says which way a difference goes.
type Direction string

const (
	// Tightens is a promise: no evidence that was deferred passes because of it.
	Tightens Direction = "tightens"
	Loosens  Direction = "loosens"
	// Changes means that the direction is unknown. It must be treated as a loosening.
	Changes Direction = "changes"
)

// A Difference is one requirement that differs between the old and the new rules.
type Difference struct {
	Path      string    `json:"path"` // such as rules[default].gates.performance.target.speedup
	Old       string    `json:"old"`
	New       string    `json:"new"`
	Direction Direction `json:"direction"`
}

// Clipped returns the difference with each of its texts cut to this many bytes, for people to read.
func (d Difference) Clipped(most int) Difference {
	for _, text := range []*string{&d.Path, &d.Old, &d.New} {
		if len(*text) > most {
			*text = strings.ToValidUTF8((*text)[:most], "") + "…"
		}
	}
	return d
}

// None represents a missing value.
const None = "none"

// A List has differences in the order in which they were found.
type List []Difference

// Add adds a difference.
func (l *List) Add(path, old, new string, d Direction) {
	*l = append(*l, Difference{Path: path, Old: old, New: new, Direction: d})
}

// Way adds a difference. least means that the new rules are at least as strict as the old, most
// that they are at most as strict. If both hold there is no difference.
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

// Loosens reports whether any difference may let something pass that was deferred.
func (l List) Loosens() bool {
	return slices.ContainsFunc(l, func(d Difference) bool { return d.Direction != Tightens })
}

// Unknown adds a difference whose direction is unknown.
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

// Less compares a figure for which less is stricter.
func Less[T cmp.Ordered](l *List, path string, old, new T) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new < old))
	}
}

// More compares a figure for which more is stricter.
func More[T cmp.Ordered](l *List, path string, old, new T) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new > old))
	}
}

// Limit compares a figure for which less is stricter and a missing value is no limit.
func Limit[T cmp.Ordered](l *List, path string, old, new *T, comes Direction) {
	if Both(l, path, old, new, comes) {
		Less(l, path, *old, *new)
	}
}

// Both reports whether there are two values to compare. If one was removed, it adds that as a
// loosening. If one was added, it adds that with the direction comes.
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

// Asked compares something that is stricter if it is asked.
func Asked(l *List, path string, old, new bool) {
	if old != new {
		l.Add(path, text(old), text(new), stricter(new))
	}
}

// Set compares a list in which every entry is one more requirement, in any order.
func Set[T comparable](l *List, path string, old, new []T) {
	l.Way(path, text(old), text(new), holds(new, old), holds(old, new))
}

// Fewer compares a list for which fewer entries are looser. The direction of any other difference,
// including a different order, is unknown.
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

// text returns a value as people read it.
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
