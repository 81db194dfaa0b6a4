package kernels

import (
	"errors"
	"fmt"
	"iter"
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
	toggles := c.m.toggleNames()
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

// A trial is values to try a variant's expressions with.
type trial struct {
	where   string
	dims    Dims
	toggles map[string]int
}

// trials are every shape that a variant supports, and a sample of the secret ones.
func (m *Manifest) trials(variant, of string) []trial {
	var trials []trial
	toggles := m.ToggleValues(variant)
	for _, s := range m.ShapesFor(variant) {
		trials = append(trials, trial{"shape " + s.Name + of + ", " + s.Dims.String(), s.Dims, toggles})
	}
	for _, dims := range m.secretSample(variant) {
		trials = append(trials, trial{"a secret shape" + of + ", " + dims.String(), dims, toggles})
	}
	return trials
}

// A computed value of a manifest has a place there, and may fail at some shapes.
type computed struct {
	at  func(manifest *strict.Node) *strict.Node
	try func(trial) error
}

// computed lists all values of a variant that are computed.
func (m *Manifest) computed(v Variant) []computed {
	var all []computed
	add := func(try func(trial) error, path ...string) {
		all = append(all, computed{func(n *strict.Node) *strict.Node { return n.Child(path...) }, try})
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		ofArgument := func(try func(trial) error, path ...string) {
			all = append(all, computed{func(n *strict.Node) *strict.Node { return n.Child("arguments").Items()[i].Child(path...) }, try})
		}
		if composite, ok := a.Composite(m); ok {
			for _, p := range composite.Parts {
				if p.Value != nil {
					ofArgument(func(t trial) error { _, err := m.PartValue(p, t.dims, t.toggles); return err })
				}
			}
			continue
		}
		if a.Access == Absent {
			continue
		}
		if a.Access == Scalar {
			ofArgument(func(t trial) error { _, err := m.ScalarValue(a, t.dims, t.toggles); return err }, "value")
			continue
		}
		ofArgument(func(t trial) error { _, err := m.ShapeOf(a, t.dims, t.toggles); return err }, "shape")
		switch {
		case a.Structs():
			ofArgument(func(t trial) error { _, err := m.ElementOf(a, t.dims, t.toggles); return err }, "fields")
		case a.Access != Out && a.ScaleOf == "":
			ofArgument(func(t trial) error { _, err := m.FillingOf(a, t.dims, t.toggles); return err }, "init")
		}
		if a.TensorMap != nil {
			ofArgument(func(t trial) error { _, err := m.TileOf(a, t.dims, t.toggles); return err }, "tensor_map")
		}
	}
	if m.Compiler == Triton {
		add(func(t trial) error { _, err := m.Special(v.Name, t.dims, t.toggles); return err }, "constants")
	}
	if l := m.launchOf(v); l != nil {
		at := []string{"launch"}
		if v.Launch != nil {
			at = []string{"variants", v.Name, "launch"}
		}
		for _, s := range l.starts() {
			all = append(all, computed{
				func(n *strict.Node) *strict.Node { return s.place(n.Child(at...)).Child("grid") },
				func(t trial) error { _, err := s.geometry(m.Env(t.dims, t.toggles)); return err },
			})
		}
		add(func(t trial) error { return m.scratchSize(v.Name, t) }, "scratch")
		add(func(t trial) error { return m.copySizes(v, t) }, at...)
	}
	for i := range m.Scratch {
		all = append(all, computed{
			func(n *strict.Node) *strict.Node { return n.Child("scratch").Items()[i].Child("shape") },
			func(t trial) error { _, err := m.ShapeOf(m.Scratch[i].argument(), t.dims, t.toggles); return err },
		})
	}
	if m.ReferenceOnDevice() {
		add(func(t trial) error { _, err := m.ReferenceGeometry(t.dims); return err }, "reference", "launch", "grid")
	}
	add(func(t trial) error { _, err := m.FLOPs(t.dims); return err }, "work", "flops")
	add(func(t trial) error { _, err := m.Bytes(t.dims); return err }, "work", "bytes")
	return all
}

// A failure is a computed value that there is not at some shape.
type failure struct {
	computed
	fault *fault
	where string
}

func (f failure) String() string { return f.fault.at(" at " + f.where) }

// node is where the mistake stands: in the expression, or else in the field.
func (f failure) node(manifest *strict.Node) *strict.Node {
	if f.fault.expr != nil && f.fault.expr.at != nil {
		return f.fault.expr.at
	}
	return f.at(manifest)
}

// failures tries all that is computed for a variant, which may have toggles behind its
// name.
func (m *Manifest) failures(variant, of string) iter.Seq[failure] {
	return func(yield func(failure) bool) {
		v, _ := m.Variant(variant)
		values := m.computed(v)
		for _, t := range m.trials(variant, of) {
			for _, value := range values {
				if f, ok := errors.AsType[*fault](value.try(t)); ok && !yield(failure{value, f, t.where}) {
					return
				}
			}
		}
	}
}

// evaluateAll tries every variant's expressions: what would fail at run time
// fails here. Each place is reported once.
func (c *checker) evaluateAll() {
	m := c.m
	reported, seen := map[string]bool{}, map[string]bool{}
	for i, v := range m.Variants {
		// Variants that differ in their source alone compute the same values.
		if defines := strings.Join(m.Defines(v.Name), " "); v.Launch == nil && len(v.Limits) == 0 {
			if seen[defines] {
				continue
			}
			seen[defines] = true
		}
		of := ""
		if i > 0 {
			of = " of variant " + v.Name
		}
		for f := range m.failures(v.Name, of) {
			if at := f.node(c.n); !reported[at.Path()] {
				reported[at.Path()] = true
				c.errorf(at, "%s", f)
			}
		}
	}
}

// Try tells whether a variant exists and, where toggles follow its name, whether all
// that they change can be computed: reading the manifest has tried the variants as
// they are declared.
func (m *Manifest) Try(variant string) error {
	if _, err := m.Variant(variant); err != nil {
		return err
	}
	for f := range m.failures(variant, "") {
		return fmt.Errorf("variant %q: %s", variant, f)
	}
	return nil
}
