package policy

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Shapes names shapes of the kernel's manifest. All means every shape, First the first one in the
// manifest, whatever its name.
type Shapes struct {
	All   bool
	First bool
	Names []string
}

const (
	allShapes  = "all"
	firstShape = "first"
	maxShapes  = 64 // as many as a manifest may have
)

func (s *Shapes) UnmarshalStrict(n *strict.Node) {
	if text, ok := n.Text(); ok {
		if text != allShapes && text != firstShape {
			n.Errorf("%q is not a list of shapes (write all, first, or [mission, long])", text)
			return
		}
		*s = Shapes{All: text == allShapes, First: text == firstShape}
		return
	}
	*s = Shapes{}
	switch items := len(n.Items()); {
	case n.List() && items == 0:
		n.Errorf("is empty (write all, or [mission, long])")
		return
	case items > maxShapes:
		n.Errorf("has %d shapes (write at most %d)", items, maxShapes)
		return
	}
	n.Decode(&s.Names)
	seen := map[string]bool{}
	strict.Each(n, s.Names, func(at *strict.Node, name *string) {
		switch _, ok := at.Text(); {
		case !ok || at.Null():
			return // refused
		case *name == "":
			at.Errorf("is empty (write the name of a shape)")
		case *name == allShapes:
			at.Errorf("all is not the name of a shape (write shapes: all, without brackets)")
		case seen[*name]:
			at.Errorf("%q is named twice (delete one)", *name)
		}
		seen[*name] = true
	})
}

func (s *Shapes) JSONSchema() map[string]any {
	return map[string]any{"title": "all, first, or a list of shapes", "anyOf": []any{
		map[string]any{"enum": []any{allShapes, firstShape}},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "maxItems": maxShapes},
	}}
}

// fill selects every shape if none was named.
func (s *Shapes) fill() { s.All = s.All || s.none() }

func (s Shapes) none() bool { return !s.All && !s.First && len(s.Names) == 0 }

// Pick returns the selected shapes out of those that the manifest has, in the manifest's order.
func (s Shapes) Pick(known []string) []string {
	if s.All {
		return known
	}
	if s.First {
		return known[:min(1, len(known))]
	}
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !slices.Contains(s.Names, k) })
}

// Unknown returns the names that the manifest does not have.
func (s Shapes) Unknown(known []string) []string {
	return slices.DeleteFunc(slices.Clone(s.Names), func(name string) bool { return slices.Contains(known, name) })
}

func (s Shapes) String() string {
	if s.All {
		return "all shapes"
	}
	if s.First {
		return "the first shape"
	}
	return strings.Join(s.Names, ", ")
}
