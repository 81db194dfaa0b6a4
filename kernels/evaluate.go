package kernels

import (
	"errors"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// compileAll makes every expression ready and reports the names in it that
// nothing gives a value to.
func (c *checker) compileAll() {
	if len(c.m.dims()) == 0 {
		return
	}
	all, overDims := c.m.exprs()
	var toggles []string
	for _, t := range c.m.Toggles {
		toggles = append(toggles, t.Name)
	}
	for _, e := range all {
		c.compile(e, toggles)
	}
	for _, e := range overDims {
		c.compile(e, nil)
	}
}

func (c *checker) compile(e *Expr, toggles []string) {
	if e.at == nil {
		return // it could not be read
	}
	known := slices.Concat(c.m.dims(), toggles)
	for _, name := range e.names {
		if !slices.Contains(known, name) {
			c.errorf(e.at, "%q in %q is not known here (known: %s)", name, e.text, strings.Join(known, ", "))
			return
		}
	}
	if err := e.compile(known); err != nil {
		c.errorf(e.at, "%s", err)
	}
}

// A trial is values to try every expression with.
type trial struct {
	where   string
	variant Variant
	dims    Dims
	toggles map[string]int
}

// evaluateAll tries every variant's expressions at every shape that it supports
// and at a sample of the secret ones: what would fail at run time fails here.
// Each place is reported once.
func (c *checker) evaluateAll() {
	m := c.m
	reported := map[string]bool{}
	report := func(fallback *strict.Node, t trial, err error) {
		var f *fault
		if !errors.As(err, &f) {
			return
		}
		at := fallback
		if f.expr != nil && f.expr.at != nil {
			at = f.expr.at
		}
		if !reported[at.Path()] {
			reported[at.Path()] = true
			c.errorf(at, "%s", f.at(" at "+t.where))
		}
	}
	arguments := c.n.Child("arguments").Items()
	for _, t := range c.trials() {
		for i := range m.Arguments {
			a := &m.Arguments[i]
			if a.Access == Scalar {
				_, err := m.ScalarValue(a, t.dims, t.toggles)
				report(arguments[i].Child("value"), t, err)
				continue
			}
			_, err := m.ShapeOf(a, t.dims, t.toggles)
			report(arguments[i].Child("shape"), t, err)
			if err == nil && a.TensorMap != nil {
				_, err := m.TileOf(a, t.dims, t.toggles)
				report(arguments[i].Child("tensor_map", "box"), t, err)
			}
		}
		if m.launchOf(t.variant) != nil {
			_, err := m.Geometry(t.variant.Name, t.dims, t.toggles)
			at := c.n.Child("launch", "grid")
			if t.variant.Launch != nil {
				at = c.n.Child("variants", t.variant.Name, "launch", "grid")
			}
			report(at, t, err)
		}
		if m.ReferenceOnDevice() {
			_, err := m.ReferenceGeometry(t.dims)
			report(c.n.Child("reference", "launch", "grid"), t, err)
		}
		_, err := m.FLOPs(t.dims)
		report(c.n.Child("work", "flops"), t, err)
		_, err = m.Bytes(t.dims)
		report(c.n.Child("work", "bytes"), t, err)
	}
}

func (c *checker) trials() []trial {
	m := c.m
	var trials []trial
	seen := map[string]bool{}
	for i, v := range m.Variants {
		// Variants that differ in their source alone compute the same values.
		if defines := strings.Join(m.Defines(v.Name), " "); v.Launch == nil && len(v.Limits) == 0 {
			if seen[defines] {
				continue
			}
			seen[defines] = true
		}
		toggles, of := m.ToggleValues(v.Name), ""
		if i > 0 {
			of = " of variant " + v.Name
		}
		for _, s := range m.ShapesFor(v.Name) {
			trials = append(trials, trial{"shape " + s.Name + of + ", " + s.Dims.String(), v, s.Dims, toggles})
		}
		for _, dims := range m.secretSample(v.Name) {
			trials = append(trials, trial{"a secret shape" + of + ", " + dims.String(), v, dims, toggles})
		}
	}
	return trials
}
