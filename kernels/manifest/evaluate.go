package manifest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// compileAll compiles every expression and reports unknown names in it.
func (c *checker) compileAll() {
	if len(c.m.dims()) == 0 {
		return
	}
	all, overDims := c.m.exprs()
	toggles, tuned := c.m.toggleNames(), c.m.tunedNames()
	// The problem does not depend on the configuration, and the configuration not on itself.
	implementation := map[*Expr]bool{}
	for _, e := range exprsOf(c.m.Scratch, c.m.Launch, c.m.Variants, c.m.Constants, c.m.NumWarps, c.m.NumStages, c.m.NumCTAs) {
		implementation[e] = true
	}
	for i := range c.m.Arguments {
		for _, e := range slices.Concat(exprsOf(c.m.Arguments[i].TensorMap), c.m.Arguments[i].settings()) {
			implementation[e] = true
		}
	}
	onGPU, counters := c.m.launchExprs(), c.m.counters()
	for _, e := range all {
		known := toggles
		if implementation[e] {
			known = slices.Concat(toggles, tuned)
		}
		if onGPU[e] {
			known = append(known[:len(known):len(known)], smsName)
		}
		if name := counters[e]; name != "" {
			known = append(known[:len(known):len(known)], name)
		}
		c.compile(e, known)
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
	key := fmt.Sprint(len(known), known[len(known)-1], e.condition, e.text) // lists of one length differ in their last name
	if e.program = c.ready[key]; e.program != nil {
		return
	}
	for _, name := range e.names {
		if !slices.Contains(known, name) {
			hint := ""
			if name == smsName {
				hint = "; a launch, its scratch and a setting know SMS, because the rest is the same on every GPU"
			}
			if _, bare := e.bare(); bare && e.literal {
				hint = fmt.Sprintf("; write {text: %s} for a text, {dtype: %[1]s} for a format", name)
			}
			c.errorf(e.at, "%q in %q is not known here (known: %s%s)", name, e.text, strings.Join(known, ", "), hint)
			return
		}
	}
	if err := e.compile(known); err != nil {
		c.errorf(e.at, "%s", err)
		return
	}
	c.ready[key] = e.program
}

// A trial is a set of values to try a variant's expressions with.
type trial struct {
	where   string
	dims    Dims
	toggles map[string]int
}

// trials returns every shape that a variant supports, and a sample of the secret ones.
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

// A computed value has a place in the manifest, and may fail at some shapes.
type computed struct {
	at   func(manifest *strict.Node) *strict.Node
	cost int // of one try
	try  func(trial) error
}

// problemValues lists the values that every variant computes.
func (m *Manifest) problemValues() []computed {
	var all []computed
	add := func(cost int, try func(trial) error, path ...string) {
		all = append(all, computed{func(n *strict.Node) *strict.Node { return n.Child(path...) }, cost, try})
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		ofArgument := func(part any, try func(trial) error, path ...string) {
			all = append(all, computed{func(n *strict.Node) *strict.Node { return n.Child("arguments").Items()[i].Child(path...) }, m.workOf(part), try})
		}
		if composite, ok := a.Composite(m); ok {
			for _, p := range composite.Parts {
				if p.Value != nil {
					ofArgument(p.Value, func(t trial) error { _, err := m.PartValue(p, t.dims, t.toggles); return err })
				}
			}
			continue
		}
		if a.Access == Absent {
			continue
		}
		if a.Access == Scalar {
			field := "value"
			if a.Setting != nil {
				field = "setting"
			}
			ofArgument(a.scalar(), func(t trial) error { _, err := m.ScalarValue(a, t.dims, t.toggles); return err }, field)
			continue
		}
		ofArgument(a.Shape, func(t trial) error { _, err := m.ShapeOf(a, t.dims, t.toggles); return err }, "shape")
		switch {
		case a.Structs():
			ofArgument(a, func(t trial) error { _, err := m.ElementOf(a, t.dims, t.toggles); return err }, "fields")
		case a.Access != Out && a.ScaleOf == "":
			ofArgument(a, func(t trial) error { _, err := m.FillingOf(a, t.dims, t.toggles); return err }, "init")
		}
		if a.TensorMap != nil {
			ofArgument(a, func(t trial) error { _, err := m.TileOf(a, t.dims, t.toggles); return err }, "tensor_map")
		}
	}
	for i := range m.Scratch {
		all = append(all, computed{
			func(n *strict.Node) *strict.Node { return n.Child("scratch").Items()[i].Child("shape") },
			m.workOf(m.Scratch[i].Shape),
			func(t trial) error { _, err := m.ShapeOf(m.Scratch[i].argument(), t.dims, t.toggles); return err },
		})
	}
	if m.ReferenceOnDevice() {
		add(m.workOf(m.Reference), func(t trial) error { _, err := m.ReferenceGeometry(t.dims); return err }, "reference", "launch", "grid")
	}
	add(m.workOf(m.Work), func(t trial) error { _, err := m.FLOPs(t.dims); return err }, "work", "flops")
	add(m.workOf(m.Work), func(t trial) error { _, err := m.Bytes(t.dims); return err }, "work", "bytes")
	return all
}

// launchValues lists the values of a variant's own launch.
func (m *Manifest) launchValues(v Variant) []computed {
	var all []computed
	add := func(cost int, try func(trial) error, path ...string) {
		all = append(all, computed{func(n *strict.Node) *strict.Node { return n.Child(path...) }, cost, try})
	}
	l := m.launchOf(v)
	if m.Compiler == Triton {
		// Every toggle is searched in every expression.
		used := exprsOf(m.Constants, m.Autotune, m.NumWarps, m.NumStages, m.NumCTAs, m.Arguments, l)
		steps := 1
		if l != nil {
			steps = 0
			for _, s := range l.starts() {
				steps += l.most(s.step)
			}
		}
		cost := m.workOf(m.Constants, m.Autotune, m.NumWarps, m.NumStages, m.NumCTAs, m.Arguments, l) + (1+len(m.Toggles))*len(used)
		add(steps*cost, func(t trial) error { _, err := m.Specials(v.Name, t.dims, t.toggles, true); return err }, "constants")
	}
	if l == nil {
		return all
	}
	at := []string{"launch"}
	if v.Launch != nil {
		at = []string{"variants", v.Name, "launch"}
	}
	for _, s := range l.starts() {
		all = append(all, computed{
			func(n *strict.Node) *strict.Node { return s.place(n.Child(at...)).Child("grid") },
			l.most(s.step) * m.workOf(s.Start),
			func(t trial) error {
				return l.inEachRound(s.step, m.Env(t.dims, t.toggles), func(env Env) error { _, err := s.geometry(env); return err })
			},
		})
	}
	for i := range l.Steps {
		s := &l.Steps[i]
		if len(s.Scalars) == 0 {
			continue
		}
		all = append(all, computed{
			func(n *strict.Node) *strict.Node { return itemOf(n.Child(at...).Child("steps"), i).Child("scalars") },
			l.most(i) * m.workOf(s.Scalars),
			func(t trial) error {
				return l.inEachRound(i, m.Env(t.dims, t.toggles), func(env Env) error { _, err := stepIn{s, env, ""}.scalars(); return err })
			},
		})
	}
	if slices.ContainsFunc(l.Steps, func(s Step) bool { return s.Repeat != nil }) {
		add(maxLaunched+m.workOf(mapped(l.Steps, func(s Step) *Loop { return s.Repeat })), func(t trial) error { return l.starting(m.Env(t.dims, t.toggles)) }, append(slices.Clone(at), "steps")...)
	}
	scratch := m.ScratchOf(v.Name)
	add(m.workOf(scratch), func(t trial) error { return m.scratchSize(scratch, t) }, "scratch")
	copies := 0
	for _, s := range l.Steps {
		for _, name := range []string{s.Copy, s.To} {
			if a, ok := m.passable(name); ok && s.Copy != "" {
				copies += m.workOf(a.Shape)
			}
		}
	}
	add(copies, func(t trial) error { return m.copySizes(l, t) }, at...)
	return all
}

// A failure is a value that cannot be computed at some shape.
type failure struct {
	computed
	fault *fault
	where string
}

func (f failure) String() string { return f.fault.at(" at " + f.where) }

// node returns where the mistake is: in the expression, or else in the field.
func (f failure) node(manifest *strict.Node) *strict.Node {
	if f.fault.expr != nil && f.fault.expr.at != nil {
		return f.fault.expr.at
	}
	return f.at(manifest)
}

// failures tries values of a variant, which may have toggles behind its name.
func (m *Manifest) failures(variant, of string, values []computed) iter.Seq[failure] {
	return func(yield func(failure) bool) {
		for _, t := range m.trials(variant, of) {
			for _, value := range values {
				if f, ok := errors.AsType[*fault](value.try(t)); ok && !yield(failure{value, f, t.where}) {
					return
				}
			}
		}
	}
}

// evaluateAll tries every variant's expressions, so that what would fail at run time fails here.
// Each place is reported once.
func (c *checker) evaluateAll() {
	m := c.m
	seen := map[string]bool{}
	problem := m.problemValues()
	for i, v := range m.Variants {
		of := ""
		if i > 0 {
			of = " of variant " + v.Name
		}
		// Variants with equal limits and toggles have the same problem values, and equal launches
		// have the same launch values.
		asked := written(v.Limits) + "\n" + strings.Join(m.Defines(v.Name), " ")
		if !seen[asked] {
			seen[asked] = true
			if !c.evaluate(v, of, problem) {
				return
			}
		}
		launch := m.launchValues(v)
		started := asked + "\n" + written(m.launchOf(v))
		if seen[started] {
			// It costs nothing here, but it does whenever this variant is planned and measured.
			if !c.affordVariant(v, launch) {
				return
			}
			continue
		}
		seen[started] = true
		if !c.evaluate(v, of, launch) {
			return
		}
	}
}

// evaluate tries the values of a variant, unless that exceeds the manifest's budget.
func (c *checker) evaluate(v Variant, of string, values []computed) bool {
	if !c.affordVariant(v, values) {
		return false
	}
	for f := range c.m.failures(v.Name, of, values) {
		if at := f.node(c.n); !c.reported[at.Path()] {
			c.reported[at.Path()] = true
			c.errorf(at, "%s", f)
		}
	}
	return true
}

// Try reports whether a variant exists and, if toggles follow its name, whether everything that
// they change can be computed. Parse has tried the variants as they are declared.
func (m *Manifest) Try(variant string) error {
	v, err := m.Variant(variant)
	if err != nil {
		return err
	}
	for f := range m.failures(variant, "", slices.Concat(m.problemValues(), m.launchValues(v))) {
		return fmt.Errorf("variant %q: %s", variant, f)
	}
	return nil
}
