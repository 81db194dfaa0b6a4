package policy

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Context says in which state a launch finds the caches.
type Context string

const (
	// Cold launches find empty caches.
	Cold Context = "cold"
	// Warm launches find their arguments in the L2 cache, as far as it has room.
	Warm Context = "warm"
)

var contexts = []Context{Cold, Warm}

// Contexts are the contexts that a goal is about, each on its own. None means cold.
type Contexts []Context

// UnmarshalStrict reads one word or a list of words.
func (c *Contexts) UnmarshalStrict(n *strict.Node) {
	if !n.List() {
		var one Context
		strict.Word(n, &one, contexts)
		*c = Contexts{one}
		return
	}
	*c = nil
	if len(n.Items()) == 0 {
		n.Errorf("is empty (write cold, warm, or both)")
	}
	for _, item := range n.Items() {
		var one Context
		if strict.Word(item, &one, contexts); one != "" && slices.Contains(*c, one) {
			item.Errorf("%q is named twice (delete one)", one)
		}
		*c = append(*c, one)
	}
}

func (c *Contexts) JSONSchema() map[string]any {
	word := strict.WordSchema(contexts)
	return map[string]any{"title": "cold, warm, or a list of them", "anyOf": []any{
		word, map[string]any{"type": "array", "items": word, "minItems": 1},
	}}
}

func (c *Contexts) fill() {
	if len(*c) == 0 {
		*c = Contexts{Cold}
	}
}

// Has reports whether a goal is about a context.
func (c Contexts) Has(one Context) bool {
	return slices.Contains(c, one) || len(c) == 0 && one == Cold
}

func (c Contexts) onlyCold() bool { return !c.Has(Warm) }

func (c Contexts) String() string {
	var words []string
	for _, one := range contexts {
		if c.Has(one) {
			words = append(words, string(one))
		}
	}
	return strings.Join(words, " and ")
}
