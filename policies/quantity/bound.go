package quantity

import (
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// An Op compares a measured figure with the figure that the policy asks for.
type Op string

const (
	AtLeast Op = ">="
	AtMost  Op = "<="
	Above   Op = ">"
	Below   Op = "<"
)

// The longer operators first: ">= 5" must not read as "> (= 5)".
var ops = []Op{AtLeast, AtMost, Above, Below}

// A Bound is a condition on a figure: ">= +10%", "<= 128". The text always
// carries its operator, so that a reader never has to know which way a field
// is meant.
type Bound[T Count | Bytes | Percent | Micros | Number] struct {
	Op    Op
	Value T
}

// Lower tells whether the bound asks for at least something.
func (b Bound[T]) Lower() bool { return b.Op == AtLeast || b.Op == Above }

// Holds tells whether a figure, in the unit of T, meets the bound.
func (b Bound[T]) Holds(figure float64) bool {
	limit := float64(b.Value)
	switch b.Op {
	case AtLeast:
		return figure >= limit
	case AtMost:
		return figure <= limit
	case Above:
		return figure > limit
	default:
		return figure < limit
	}
}

func (b Bound[T]) String() string {
	text := unitOf(b.Value).format(float64(b.Value))
	if _, change := any(b.Value).(Percent); change && b.Value > 0 && b.Lower() {
		text = "+" + text
	}
	return string(b.Op) + " " + text
}

func (b *Bound[T]) UnmarshalStrict(n *strict.Node) {
	var zero T
	u := unitOf(zero)
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is not a condition (write e.g. \"<= %s\")", u.example)
		return
	}
	rest := strings.TrimSpace(text)
	for _, op := range ops {
		after, found := strings.CutPrefix(rest, string(op))
		if !found {
			continue
		}
		f, ok := u.parse(strings.TrimSpace(after))
		if !ok {
			n.Errorf("%q: %q is not %s (write e.g. \"%s %s\")", text, strings.TrimSpace(after), u.noun, op, u.example)
			return
		}
		b.Op, b.Value = op, T(f)
		return
	}
	n.Errorf("%q has no comparison (write e.g. \"<= %s\" or \">= %s\")", text, u.example, u.example)
}

func (b *Bound[T]) JSONSchema() map[string]any {
	var zero T
	return map[string]any{"type": "string", "pattern": `^(>=|<=|>|<) *` + unitOf(zero).pattern + "$"}
}
