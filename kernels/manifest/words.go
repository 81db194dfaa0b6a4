package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// keywords are the words of C and C++ that can name nothing.
var keywords = strings.Fields(`
	alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
	constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast
	else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
	not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
	signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
	typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq`)

// checkIdentifier reports a name that a C compiler would refuse.
func checkIdentifier(at reporter, name string) {
	switch {
	case !identifier.MatchString(name):
		at.Errorf("%q is not a C identifier (write letters, digits and _)", name)
	case slices.Contains(keywords, name):
		at.Errorf("%q is a keyword of C or C++ (choose another name)", name)
	}
}

// checkOperand is checkIdentifier for names that expressions use too.
func checkOperand(at reporter, name string) {
	if slices.Contains(expressionWords, name) || functions[name].call != nil {
		at.Errorf("%q means something else in expressions (choose another name)", name)
		return
	}
	checkIdentifier(at, name)
}

// IsArgument reports whether an argument may have this name.
func IsArgument(name string) bool {
	return identifier.MatchString(name) && !slices.Contains(keywords, name)
}

// IsOperand reports whether a dim or a toggle may have this name.
func IsOperand(name string) bool {
	return IsArgument(name) && !slices.Contains(expressionWords, name) && functions[name].call == nil
}

// IsParameter reports whether a constant of a Triton kernel may have this name.
func IsParameter(name string) bool { return pythonName.MatchString(name) }

// A reporter is a place in the file: a node, or the key of a pair.
type reporter interface {
	Errorf(format string, args ...any)
}

// itemOf returns an element of a list. If the file has the list twice and the other one is shorter,
// it returns the list itself.
func itemOf(list *strict.Node, i int) *strict.Node {
	if items := list.Items(); i < len(items) {
		return items[i]
	}
	return list
}

// mapped returns a value of each entry of a list, such as its name.
func mapped[T, V any](list []T, value func(T) V) []V {
	values := make([]V, len(list))
	for i, entry := range list {
		values[i] = value(entry)
	}
	return values
}

// maxNamed bounds the shapes, variants, toggles and arguments of one manifest:
// every expression is evaluated for every combination of the first two.
const maxNamed = 64

// eachNamed walks a mapping from names to values in file order.
func eachNamed(n *strict.Node, example string, do func(p strict.Pair)) {
	pairs := n.Pairs()
	switch {
	case n.Null() || n.Mapping() && len(pairs) == 0:
		n.Errorf("is empty (write e.g. %s)", example)
	case !n.Mapping():
		n.Errorf("is not a mapping (write e.g. %s)", example)
	case len(pairs) > maxNamed:
		n.Errorf("has %d entries (write at most %d)", len(pairs), maxNamed)
		return
	}
	seen := map[string]bool{}
	for _, p := range pairs {
		if seen[p.Key] {
			p.Errorf("is set twice (delete one)")
			continue
		}
		seen[p.Key] = true
		do(p)
	}
}

// mappingOf returns the schema of a mapping from names to values like v.
func mappingOf(v any) map[string]any {
	return map[string]any{"title": "mapping of names to mappings", "type": "object", "minProperties": 1, "maxProperties": maxNamed, "additionalProperties": schemaOf(v)}
}

// schemaOf returns the schema of a value like v within another.
func schemaOf(v any) map[string]any {
	var item map[string]any
	text, err := strict.Schema("", "", v)
	if err == nil {
		err = json.Unmarshal(text, &item)
	}
	if err != nil {
		panic(fmt.Sprintf("kernels: schema of %T: %v", v, err))
	}
	delete(item, "$schema")
	delete(item, "title")
	return item
}
