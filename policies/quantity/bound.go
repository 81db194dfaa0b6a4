package quantity

import (
	"regexp"
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

var comparison = regexp.MustCompile(`^(>=|<=|>|<) *(.*)$`)

// A Bound is a condition on a figure: ">= +10%", "<= 128". The text always has its operator, so
// that a reader need not know the direction of a field.
type Bound[T Count | Bytes | Percent | Micros | Number] struct {
	Op    Op
	Value T
}

// Lower reports whether the bound is a lower bound.
func (b Bound[T]) Lower() bool { return b.Op == AtLeast || b.Op == Above }

// Holds reports whether a figure, in the unit of T, meets the bound. Nothing meets a bound without
// an operator.
func (b Bound[T]) Holds(figure float64) bool {
	limit := float64(b.Value)
	switch b.Op {
	case AtLeast:
		return figure >= limit
	case AtMost:
		return figure <= limit
	case Above:
		return figure > limit
	case Below:
		return figure < limit
	}
	return false
}

func (b Bound[T]) String() string {
	text := write(b.Value)
	if _, change := any(b.Value).(Percent); change && b.Value > 0 && b.Lower() {
		text = "+" + text
	}
	return string(b.Op) + " " + text
}

func (b *Bound[T]) UnmarshalStrict(n *strict.Node) {
	u := unitOf(b.Value)
	text, ok := n.Text()
	if !ok || n.Null() {
		n.Errorf("is not a condition (write e.g. \"<= %s\")", u.example)
		return
	}
	m := comparison.FindStringSubmatch(text)
	if m == nil {
		n.Errorf("%q has no comparison (write e.g. \"<= %s\" or \">= %s\")", text, u.example, u.example)
		return
	}
	f, ok := u.read(m[2])
	if !ok {
		n.Errorf("%q: %q is not %s (write %s)", text, m[2], u.miss(m[2]), u.bound(m[1], m[2]))
		return
	}
	b.Op, b.Value = Op(m[1]), T(f)
}

func (b *Bound[T]) JSONSchema() map[string]any {
	u := unitOf(b.Value)
	value := strings.TrimPrefix(u.pattern.String(), "^")
	return map[string]any{"title": "bound of a " + u.title(), "type": "string", "pattern": `^(>=|<=|>|<) *` + value}
}
