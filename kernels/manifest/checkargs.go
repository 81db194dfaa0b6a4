package manifest

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// checkArguments checks the arguments together: names, outputs, and which of them are the scales of
// which.
func (c *checker) checkArguments() {
	m, n := c.m, c.n
	list := n.Child("arguments")
	if m.Mode == ModeCommand || !list.List() {
		return
	}
	if len(m.Arguments) > maxNamed {
		c.errorf(list, "has %d arguments (write at most %d)", len(m.Arguments), maxNamed)
		return
	}
	c.checkModeOfSettings()
	written := false
	for i := range m.Arguments {
		a, at := &m.Arguments[i], itemOf(list, i)
		written = written || a.Access == Out || a.Access == InOut || a.Access == "" // a refused access may have been one
		if a.Name != "" && slices.ContainsFunc(m.Arguments[:i], func(other Argument) bool { return other.Name == a.Name }) {
			c.errorf(at.Child("name"), "%q is the name of an earlier argument too (choose another)", a.Name)
		}
		if a.Name != "" && a.Name == m.Entry {
			c.errorf(at.Child("name"), "%q is the kernel's entry too (choose another)", a.Name)
		}
		c.checkTensorMap(a, at.Child("tensor_map"))
		c.checkFields(a, at)
		if a.Quantize != nil {
			if c.checkGroups(a, at.Child("quantize", "per")) {
				c.checkScale(a, at.Child("quantize", "scale"))
			}
		}
	}
	if !written {
		c.errorf(list, "write nothing: none is out or inout (add access: out to the output)")
	}
}

// checkGroups checks that each group axis is an axis of the array, in the array's order: the scales
// are laid out by it.
func (c *checker) checkGroups(a *Argument, at *strict.Node) bool {
	var bare []string
	for i := range a.Shape {
		if name, ok := a.Shape[i].bare(); ok {
			bare = append(bare, name)
		}
	}
	last := -1
	for i, name := range a.Quantize.Per {
		axis := slices.Index(bare, name)
		item := itemOf(at, i)
		switch {
		case axis < 0:
			c.errorf(item, "%q is no axis of %s that is a dim alone (write one of %s)", name, a.Name, strings.Join(bare, ", "))
			return false
		case slices.Contains(bare[axis+1:], name):
			c.errorf(item, "%q is two axes of %s (give one of them a separate dim)", name, a.Name)
			return false
		case axis <= last:
			c.errorf(item, "%q is out of order (write the axes as in shape, each once)", name)
			return false
		}
		last = axis
	}
	return true
}

func (c *checker) checkScale(a *Argument, at *strict.Node) {
	if _, ok := at.Text(); !ok || at.Null() {
		return // reported as required, or refused
	}
	if a.Quantize.Scale == "" {
		c.errorf(at, "is empty (write the name of the argument that receives the scales)")
		return
	}
	scale, ok := c.m.argument(a.Quantize.Scale)
	if !ok {
		c.errorf(at, "%q is no argument (add - {name: %s, dtype: f32, access: in, shape: %s})", a.Quantize.Scale, a.Quantize.Scale, scaleShape(a))
		return
	}
	place := itemOf(c.n.Child("arguments"), slices.IndexFunc(c.m.Arguments, func(other Argument) bool { return other.Name == scale.Name }))
	if scale.ScaleOf != "" {
		c.errorf(at, "%q already receives the scales of %s (add an argument for those of %s)", scale.Name, scale.ScaleOf, a.Name)
		return
	}
	scale.ScaleOf = a.Name
	if scale.Access != In && scale.Access != "" {
		c.errorf(place.Child("access"), "%q: %s receives the scales of %s (write in)", scale.Access, scale.Name, a.Name)
	}
	if scale.DType != F32 && scale.DType != "" {
		c.errorf(place.Child("dtype"), "%q: %s receives the scales of %s (write f32)", scale.DType, scale.Name, a.Name)
	}
	if place.Has("init") || scale.Quantize != nil {
		c.errorf(place, "%s is filled with the scales of %s (delete its init and quantize)", scale.Name, a.Name)
	}
	scale.Init = Init{}
	texts := mapped(scale.Shape, Expr.String)
	if got := "[" + strings.Join(texts, ", ") + "]"; len(texts) > 0 && !slices.Contains(texts, "") && got != scaleShape(a) {
		c.errorf(place.Child("shape"), "%s has not one scale per group of %s (write %s)", got, a.Name, scaleShape(a))
	}
}

func scaleShape(a *Argument) string {
	if len(a.Quantize.Per) == 0 {
		return "[1]"
	}
	return "[" + strings.Join(a.Quantize.Per, ", ") + "]"
}
