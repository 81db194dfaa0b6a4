package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A condition is an expression, and the measured shapes for which it is true.
type condition struct {
	text  string
	takes []bool
}

// and returns the condition that both a and b are true.
func (a condition) and(b condition) condition {
	both := condition{text: a.text, takes: slices.Clone(a.takes)}
	switch {
	case a.text == "":
		both.text = b.text
	case b.text != "" && b.text != a.text:
		both.text += " && " + b.text
	}
	for i, ok := range b.takes {
		both.takes[i] = both.takes[i] && ok
	}
	return both
}

// key identifies conditions that take the same shapes.
func (a condition) key() string {
	var b strings.Builder
	for _, ok := range a.takes {
		if ok {
			b.WriteByte('1')
		} else {
			b.WriteByte('0')
		}
	}
	return b.String()
}

func (c *chooser) condition(text string, takes func(manifest.Dims) bool) condition {
	out := condition{text: text}
	for _, s := range c.shapes {
		out.takes = append(out.takes, takes(s.Dims))
	}
	return out
}

// allConditions returns the limits on a dim or on a product of dims, and pairs of such limits. If several
// conditions take the same shapes, it keeps the shortest one.
func (c *chooser) allConditions() []condition {
	var atoms []condition
	for _, f := range c.features() {
		var values []int
		for _, s := range c.shapes {
			values = append(values, f.of(s.Dims))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		for i := 1; i < len(values); i++ {
			if slices.Equal(values, []int{0, 1}) {
				atoms = append(atoms, c.condition(f.text+" == 1", func(d manifest.Dims) bool { return f.of(d) == 1 }), c.condition(f.text+" == 0", func(d manifest.Dims) bool { return f.of(d) == 0 }))
				continue
			}
			limit := between(values[i-1], values[i])
			atoms = append(atoms,
				c.condition(fmt.Sprintf("%s >= %d", f.text, limit), func(d manifest.Dims) bool { return f.of(d) >= limit }),
				c.condition(fmt.Sprintf("%s < %d", f.text, limit), func(d manifest.Dims) bool { return f.of(d) < limit }))
		}
	}
	shortest := map[string]condition{}
	keep := func(one condition) {
		key := one.key()
		if was, ok := shortest[key]; strings.Contains(key, "1") && (!ok || len(one.text) < len(was.text)) {
			shortest[key] = one
		}
	}
	keep(c.condition("", func(manifest.Dims) bool { return true }))
	for i, a := range atoms {
		keep(a)
		for _, b := range atoms[:i] {
			keep(b.and(a))
		}
	}
	var all []condition
	for _, one := range shortest {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b condition) int {
		return cmp.Or(cmp.Compare(len(a.text), len(b.text)), cmp.Compare(a.text, b.text))
	})
	return all
}

// between returns a limit that separates two values: the smallest power of two between them, or the larger
// value.
func between(low, high int) int {
	for p := 1; p > 0 && p <= high; p *= 2 {
		if p > low {
			return p
		}
	}
	return high
}

// A feature is a dim, or a product of dims.
type feature struct {
	text  string
	names []string
}

func (f feature) of(d manifest.Dims) int {
	product := 1
	for _, name := range f.names {
		v, _ := d.Get(name)
		product *= v
	}
	return product
}

// features returns the dims that differ between the shapes, the products of two of them, and the product of
// all of them.
func (c *chooser) features() []feature {
	var names []string
	for _, d := range c.shapes[0].Dims {
		if slices.ContainsFunc(c.shapes, func(s manifest.Shape) bool { v, _ := s.Dims.Get(d.Name); return v != d.Value }) {
			names = append(names, d.Name)
		}
	}
	var all []feature
	add := func(names ...string) { all = append(all, feature{text: strings.Join(names, "*"), names: names}) }
	for i, a := range names {
		add(a)
		for _, b := range names[:i] {
			add(b, a)
		}
	}
	if len(names) > 2 {
		add(names...)
	}
	return all
}

// limits returns the condition under which a variant takes a problem, according to the limits of the variant.
func (c *chooser) limits(variant string) condition {
	out := c.condition("", func(manifest.Dims) bool { return true })
	v, err := c.m.Variant(variant)
	if err != nil {
		return out
	}
	for _, d := range c.shapes[0].Dims {
		limit, ok := v.Limits[d.Name]
		if !ok {
			continue
		}
		var words []string
		for _, part := range strings.Split(limit.String(), "|") {
			first, last, span := strings.Cut(strings.TrimSpace(part), "..")
			last, _, _ = strings.Cut(last, " ") // without the step; parsing the manifest refuses a choice that ignores it
			if !span {
				words = append(words, fmt.Sprintf("%s == %s", d.Name, first))
				continue
			}
			whole := c.m.Limits[d.Name].String() // a limit of the whole kernel needs no condition
			var ends []string
			if !strings.HasPrefix(whole, first+"..") {
				ends = append(ends, d.Name+" >= "+first)
			}
			if !strings.HasSuffix(whole, ".."+last) {
				ends = append(ends, d.Name+" <= "+last)
			}
			words = append(words, strings.Join(ends, " && "))
		}
		text := strings.Join(words, " || ")
		if len(words) > 1 {
			text = "(" + text + ")"
		}
		out = out.and(c.condition(text, func(dims manifest.Dims) bool { x, ok := dims.Get(d.Name); return ok && limit.Contains(x) }))
	}
	return out
}
