package manifest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Join returns the manifest that one side is built and launched by: the problem of one file with the
// implementation of another, checked as a whole. Arguments belong to the problem, except how they
// are passed (tensor_map) and values that only the kernel needs (setting). In command mode the
// sources belong to the problem, too: all other files are the harness, which no change may bring.
//
// The error is a strict.Problems with places in the implementation's file.
func Join(file string, problem, implementation []byte) (*Manifest, error) {
	base, err := Parse(file, problem)
	if err != nil {
		return nil, err
	}
	var kept []string
	if base.Mode == ModeCommand {
		kept = append(kept, "sources")
	}
	m := &Manifest{problem: base}
	if err := strict.Join(file, problem, implementation, m, kept...); err != nil {
		return nil, err
	}
	m.problem = nil
	return m, nil
}

// checkJoined keeps the implementation out of the problem: a toggle in the size of an argument, or
// in the value of a scalar, would change what is asked.
func (c *checker) checkJoined() {
	m, base := c.m, c.m.problem
	if base == nil {
		return
	}
	c.checkSettings(base)
	was := base.ToggleValues(base.DefaultVariant)
	for _, variant := range m.Parts(m.DefaultVariant, "") {
		is := m.ToggleValues(variant)
		for i := range m.Arguments {
			for _, name := range m.Arguments[i].asks() {
				value, isToggle := is[name]
				if !isToggle || value == was[name] {
					continue
				}
				at := c.n.Child("variants", variant, "toggles", name)
				if !c.n.Child("variants", variant, "toggles").Has(name) {
					at = c.n.Child("toggles", name, "default")
				}
				c.errorf(at, "%d changes the argument %s, which is of the problem: it is %d in the base (keep that, or have the base changed first)", value, m.Arguments[i].Name, was[name])
			}
		}
	}
}

// asks returns the names that the problem uses for an argument.
func (a *Argument) asks() []string {
	problem := *a
	problem.TensorMap, problem.Setting, problem.Fields = nil, nil, slices.Clone(a.Fields)
	for i := range problem.Fields {
		problem.Fields[i].Setting, problem.Fields[i].Settings = nil, nil
	}
	return namesIn(&problem)
}

// namesIn returns the names in all expressions of a part of a manifest.
func namesIn(part any) []string {
	var names []string
	for _, e := range exprsOf(part) {
		names = append(names, e.names...)
	}
	return names
}

// Call describes in words how the machine code of a variant is launched: two sides with equal
// machine code are the same only if this is equal, too.
func (m *Manifest) Call(variant string) string {
	if variant == Choice {
		return m.ofParts(m.choice(), m.Call)
	}
	v, _ := m.Variant(variant)
	parts := []string{"entry: " + strings.Join(m.Entries(variant), ", ")}
	if m.Mode != ModeCUDA {
		parts = []string{"entry: " + m.Entry}
	}
	var names []string
	for _, a := range m.ScratchOf(variant) {
		parts = append(parts, "scratch: "+written(a))
		names = append(names, a.asks()...)
	}
	if l := m.launchOf(v); l != nil {
		parts = append(parts, "launch: "+written(l))
		names = append(names, namesIn(l)...)
	}
	for i := range m.Arguments {
		a := &m.Arguments[i]
		names = append(names, a.asks()...)
		if a.TensorMap != nil {
			parts = append(parts, a.Name+": "+written(a.TensorMap))
			names = append(names, namesIn(a.TensorMap)...)
		}
		parts = append(parts, a.settingTexts()...)
		for _, e := range a.settings() {
			names = append(names, e.names...)
		}
	}
	values := m.ToggleValues(variant)
	maps.DeleteFunc(values, func(name string, _ int) bool { return !slices.Contains(names, name) })
	return strings.Join(append(parts, definesOf(values)...), "\n")
}

// Recipe returns everything that a variant is built and launched by, except the contents of files.
func (m *Manifest) Recipe(variant string) string {
	if variant == Choice {
		return m.ofParts(m.choice(), m.Recipe)
	}
	v, _ := m.Variant(variant)
	parts := []string{"source: " + path.Join(m.Root, v.Source), "flags: " + written(slices.Concat(m.CompilerFlags(variant), m.Defines(variant))), "arch: " + written(m.ArchOf(variant)), "limits: " + written(v.Limits), "include: " + written(m.Include), "include_first: " + written(m.IncludeFirst), m.Call(variant)}
	if recipe := m.compilerRecipe(); recipe != "" {
		parts = append(parts, recipe)
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), "\n", "; ")
}

// Dispatch returns the text of everything that decides, apart from the machine code, what runs at
// every problem size: the choice of a variant, the limits, and all expressions of launches. If the
// machine code depends on the size, it includes the compiler's input. Different texts may have the
// same meaning, but no finite number of sizes could prove it.
func (m *Manifest) Dispatch(variant string) string {
	switch {
	case variant == Choice:
		return m.ofParts(m.choice(), m.Dispatch)
	case m.Specializes():
		return m.Recipe(variant)
	}
	v, _ := m.Variant(variant)
	return strings.Join([]string{"arch: " + written(m.ArchOf(variant)), "limits: " + written(v.Limits), m.Call(variant)}, "\n")
}

// ofParts describes a choice: itself, then each variant that it chooses from.
func (m *Manifest) ofParts(itself string, say func(variant string) string) string {
	parts := []string{itself}
	for _, part := range m.Parts(Choice, "") {
		parts = append(parts, part+"\n"+say(part))
	}
	return strings.Join(parts, "\n")
}

// Launches is Call in numbers, at the manifest's shapes and at some of the secret ones: equal
// launches are equal, however the expressions are written.
func (m *Manifest) Launches(variant string) string {
	if variant == Choice {
		return m.ofParts(m.served(), m.Launches)
	}
	v, _ := m.Variant(variant)
	var b strings.Builder
	if m.Mode != ModeCUDA {
		fmt.Fprintf(&b, "entry %s\n", m.Entry) // steps have theirs
	}
	if m.sms == 0 && m.followsSMs() {
		return m.On(SupposedSMs).Launches(variant) + m.On(SupposedSMs/2-1).Launches(variant)
	}
	scratch := m.ScratchOf(variant)
	for _, t := range m.trials(variant, "") {
		steps, _ := m.stepsAt(v, m.Env(t.dims, t.toggles)) // they were tried when the manifest was read
		fmt.Fprintf(&b, "%s %+v\n", t.dims, steps)
		for _, a := range scratch {
			shape, _ := m.ShapeOf(a, t.dims, t.toggles)
			fmt.Fprintf(&b, "%s %s %s %v\n", t.dims, a.Name, a.DType, shape)
		}
		for i := range m.Arguments {
			if a := &m.Arguments[i]; a.TensorMap != nil {
				tile, _ := m.TileOf(a, t.dims, t.toggles)
				fmt.Fprintf(&b, "%s %s %+v\n", t.dims, a.Name, tile)
			}
			for k, e := range m.Arguments[i].settings() {
				value, _ := e.eval(m.Env(t.dims, t.toggles))
				fmt.Fprintf(&b, "%s %s %d %v\n", t.dims, m.Arguments[i].Name, k, value)
			}
		}
	}
	return b.String()
}

// Sheds returns the shapes of the base that a change's default variant no longer supports although
// the base's does, and whether it supports fewer of the secret ones.
func Sheds(base, head *Manifest) (shapes []string, secret bool) {
	for _, s := range base.ShapesFor(base.DefaultVariant) {
		if !head.Supports(head.DefaultVariant, s.Dims) {
			shapes = append(shapes, s.Name)
		}
	}
	if len(base.Secret) == 0 {
		return shapes, false
	}
	was, _ := base.Variant(base.DefaultVariant)
	is, _ := head.Variant(head.DefaultVariant)
	first := base.ShapesFor(base.DefaultVariant)[0].Dims
	for name, limit := range is.Limits {
		value, _ := first.Get(name)
		drawn, many := base.Secret[name]
		if old, limited := was.Limits[name]; limited && many {
			drawn = drawn.and(old)
		}
		if many && !drawn.within(limit) || !many && !limit.Contains(value) {
			secret = true
		}
	}
	return shapes, secret
}
