package manifest

import (
	"maps"
	"slices"
	"strings"
)

// Supports reports whether a variant supports a problem of these dims: the kernel's limits apply to
// all variants, and a variant may have narrower ones.
func (m *Manifest) Supports(variant string, dims Dims) bool {
	v, _ := m.Variant(variant)
	for _, limits := range []map[string]Range{m.Limits, v.Limits} {
		for name, limit := range limits {
			if value, ok := dims.Get(name); !ok || !limit.Contains(value) {
				return false
			}
		}
	}
	return true
}

// ShapesFor lists the shapes that a variant supports, in the manifest's order. The variant is
// neither timed nor compared at any other shape.
func (m *Manifest) ShapesFor(variant string) []Shape {
	return slices.DeleteFunc(slices.Clone(m.Shapes), func(s Shape) bool { return !m.Supports(variant, s.Dims) })
}

// checkRanges compares the shapes, the secret ranges and the variants' limits with the kernel's
// limits.
func (c *checker) checkRanges() {
	m, n := c.m, c.n
	if len(m.Shapes) == 0 {
		return
	}
	for _, field := range []string{"limits", "secret"} {
		for _, p := range n.Child(field).Pairs() {
			if !slices.Contains(m.dims(), p.Key) {
				c.errorf(p, "is no dim of the shapes (write one of %s)", strings.Join(m.dims(), ", "))
			}
		}
	}
	for _, shape := range m.Shapes {
		for _, dim := range shape.Dims {
			limit, ok := m.Limits[dim.Name]
			if ok && !limit.empty() && dim.Value != refusedDim && !limit.Contains(dim.Value) {
				c.errorf(n.Child("shapes", shape.Name, dim.Name), "%d is outside limits.%s %s (change one of them)", dim.Value, dim.Name, limit)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Secret)) {
		limit, ok := m.Limits[name]
		if ok && !limit.empty() && !m.Secret[name].within(limit) {
			c.errorf(n.Child("secret", name), "%s is not within limits.%s %s (narrow it)", m.Secret[name], name, limit)
		}
	}
	for _, v := range m.Variants {
		c.checkVariantLimits(v)
	}
	if n.Clean() && !c.failed {
		c.checkSupport()
	}
}

func (c *checker) checkVariantLimits(v Variant) {
	m := c.m
	for _, p := range c.n.Child("variants", v.Name, "limits").Pairs() {
		own, limit, secret := v.Limits[p.Key], m.Limits[p.Key], m.Secret[p.Key]
		switch {
		case !slices.Contains(m.dims(), p.Key):
			c.errorf(p, "is no dim of the shapes (write one of %s)", strings.Join(m.dims(), ", "))
		case own.empty():
		case !limit.empty() && !own.within(limit):
			c.errorf(p.Value, "%s is not within limits.%s %s (narrow it)", own, p.Key, limit)
		case !secret.empty() && secret.and(own).empty():
			c.errorf(p.Value, "%s has nothing in common with secret.%s %s (widen one of them)", own, p.Key, secret)
		}
	}
}

// checkSupport finds variants and shapes that would never be run.
func (c *checker) checkSupport() {
	m := c.m
	for _, v := range m.Variants {
		if len(m.ShapesFor(v.Name)) == 0 {
			c.errorf(c.n.Child("variants", v.Name, "limits"), "leave the variant none of the shapes (widen them, or add a shape)")
		}
	}
	for _, s := range m.Shapes {
		supports := func(v Variant) bool { return m.Supports(v.Name, s.Dims) }
		if len(m.Variants) > 0 && !slices.ContainsFunc(m.Variants, supports) {
			c.errorf(c.n.Child("shapes", s.Name), "is within no variant's limits (widen them, or delete the shape)")
		}
	}
}
