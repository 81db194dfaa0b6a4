package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Choice is the name of the choice by problem size wherever a variant is named: in commands, in
// evidence and in reports.
const Choice = "choose"

const maxChoices = 16

// A Chosen is one entry of a choice by problem size: a variant, and the problems that it
// is for.
type Chosen struct {
	When    *Condition `yaml:"when" eg:"S >= 1024" default:"(every problem)" doc:"Condition on the dims. The last entry has no condition."`
	Variant string     `yaml:"variant" required:"true" eg:"stage1" doc:"Name of a variant. cuda: on a GPU that the variant is not built for, the entry is skipped."`
}

// A Condition is an expression that is true or false.
type Condition struct{ Expr }

func (c *Condition) UnmarshalStrict(n *strict.Node) {
	c.Expr.UnmarshalStrict(n)
	c.Expr.condition = true
}

func (c *Condition) JSONSchema() map[string]any {
	schema := c.Expr.JSONSchema()
	schema["title"] = "condition"
	return schema
}

// takes reports whether the entry applies to problems of these dims.
func (c *Chosen) takes(env Env) (bool, error) {
	if c.When == nil {
		return true, nil
	}
	v, err := c.When.eval(env)
	return v != 0, err
}

// Serving returns the variant that is launched for a problem on a device: the variant itself or,
// for the choice, that of the first entry that takes the dims and is built for the device. A device
// is an architecture such as sm_90; "" is one that runs everything.
func (m *Manifest) Serving(variant, device string, dims Dims) (string, error) {
	if variant != Choice {
		return variant, nil
	}
	i, err := m.entry(device, dims)
	if err != nil {
		return "", err
	}
	return m.Choose[i].Variant, nil
}

// entry returns the number of the choice's entry for a problem.
func (m *Manifest) entry(device string, dims Dims) (int, error) {
	env := m.Env(dims, nil)
	for i := range m.Choose {
		c := &m.Choose[i]
		if !m.builtFor(c.Variant, device) {
			continue
		}
		if takes, err := c.takes(env); err != nil || takes {
			return i, err
		}
	}
	return 0, &fault{what: fmt.Sprintf("has no entry for %s on %s", dims, device), fix: "end it with a variant that is built for " + device + ", without when"}
}

// builtFor reports whether a variant has code for a device.
func (m *Manifest) builtFor(variant, device string) bool {
	return device == "" || m.Mode != ModeCUDA || slices.ContainsFunc(m.ArchOf(variant), func(a Arch) bool { return a.Device() == device })
}

// Parts returns what must be built for a variant on a device: the variant itself or, for the
// choice, all variants that it may choose there.
func (m *Manifest) Parts(variant, device string) []string {
	if variant != Choice {
		return []string{variant}
	}
	var parts []string
	for _, c := range m.Choose {
		if !m.builtFor(c.Variant, device) {
			continue
		}
		if !slices.Contains(parts, c.Variant) {
			parts = append(parts, c.Variant)
		}
		if c.When == nil && device != "" {
			break // later entries are never reached there
		}
	}
	return parts
}

// ServedBy returns the shapes of a variant for which one of its parts is launched on a device.
func (m *Manifest) ServedBy(variant, part, device string) []Shape {
	return slices.DeleteFunc(m.ShapesFor(variant), func(s Shape) bool {
		serving, err := m.Serving(variant, device, s.Dims)
		return err != nil || serving != part
	})
}

// Cover returns the shapes that must run in addition to those that are asked for, so that every
// variant of a choice runs on any device: nothing else would check a variant that no asked shape
// uses. For each variant it is the smallest shape.
func (m *Manifest) Cover(variant string, asked []string) []string {
	var cover []string
	if variant != Choice {
		return nil
	}
	for _, device := range m.devices() {
		for _, part := range m.Parts(variant, device) {
			served := m.ServedBy(variant, part, device)
			has := func(s Shape) bool { return slices.Contains(asked, s.Name) || slices.Contains(cover, s.Name) }
			if len(served) > 0 && !slices.ContainsFunc(served, has) {
				cover = append(cover, slices.MinFunc(served, func(a, b Shape) int { return cmp.Compare(a.Dims.volume(), b.Dims.volume()) }).Name)
			}
		}
	}
	return cover
}

// volume returns the rough size of a problem: switches that are off do not count.
func (d Dims) volume() float64 {
	v := 1.0
	for _, dim := range d {
		v *= float64(max(dim.Value, 1))
	}
	return v
}

// devices returns those that the kernel is built for; in modes without architectures, one without a
// name.
func (m *Manifest) devices() []string {
	if m.Mode != ModeCUDA {
		return []string{""}
	}
	archs := slices.Clone(m.Arch)
	for _, part := range m.Parts(Choice, "") {
		archs = append(archs, m.ArchOf(part)...)
	}
	devices := mapped(archs, Arch.Device)
	slices.Sort(devices)
	return slices.Compact(devices)
}

// choice describes the choice in words.
func (m *Manifest) choice() string {
	var entries []string
	for _, c := range m.Choose {
		when := "else"
		if c.When != nil {
			when = c.When.String()
		}
		entries = append(entries, when+": "+c.Variant)
	}
	return "choose " + strings.Join(entries, ", ")
}

// served describes the choice in numbers: the variant for each of the manifest's shapes and for
// some of the secret ones.
func (m *Manifest) served() string {
	var b strings.Builder
	for _, device := range m.devices() {
		for _, t := range m.trials(Choice, "") {
			part, _ := m.Serving(Choice, device, t.dims) // it was tried when the manifest was read
			fmt.Fprintf(&b, "%s %s %s\n", device, t.dims, part)
		}
	}
	return b.String()
}

// checkChoose checks that the entries are variants, and that the last one applies to everything
// that is left.
func (c *checker) checkChoose() {
	m, at := c.m, c.n.Child("choose")
	if !c.n.Has("choose") {
		return
	}
	if c.n.Has("default_variant") {
		c.errorf(c.n.Child("default_variant"), "is set together with choose, which already says what a check gates (delete one of them)")
	}
	if len(m.Choose) == 0 || len(m.Choose) > maxChoices {
		c.errorf(at, "has %d entries (write 1 to %d, e.g. [{when: \"S >= 1024\", variant: long}, {variant: short}])", len(m.Choose), maxChoices)
		return
	}
	m.DefaultVariant = Choice
	for i, entry := range m.Choose {
		if item := itemOf(at, i); item.Has("variant") && !slices.Contains(m.VariantNames(), entry.Variant) {
			c.errorf(item.Child("variant"), "%q is none of the variants (write one of %s)", entry.Variant, strings.Join(m.VariantNames(), ", "))
		}
	}
	if last := len(m.Choose) - 1; m.Choose[last].When != nil {
		c.errorf(itemOf(at, last).Child("when"), "the last entry applies to all remaining problems (delete it, or add an entry without when)")
	}
}

// checkChosen tries the choice at every shape and on every device that the kernel is built for. No
// shape may be without an entry, or go to a variant that does not support it, and no entry may be
// without a shape, because it would never be measured.
func (c *checker) checkChosen() {
	m, at := c.m, c.n.Child("choose")
	if len(m.Choose) == 0 {
		return
	}
	if !c.affordChoice(at) {
		return
	}
	used := make([]bool, len(m.Choose))
	trials := slices.Concat(m.trials(Choice, ""), m.edges())
	for _, device := range m.devices() {
		for _, t := range trials {
			i, err := m.entry(device, t.dims)
			if f, ok := errors.AsType[*fault](err); ok {
				node := at
				if f.expr != nil && f.expr.at != nil {
					node = f.expr.at
				}
				c.errorf(node, "%s", f.at(" at "+t.where))
				return
			}
			used[i] = used[i] || strings.HasPrefix(t.where, "shape ")
			if v := m.Choose[i].Variant; !m.Supports(v, t.dims) {
				c.errorf(itemOf(at, i).Child("variant"), "%s is outside the limits of %s, which is chosen for it (widen variants.%s.limits, or choose another)", t.where, v, v)
				return
			}
		}
	}
	for i, is := range used {
		if !is {
			c.errorf(itemOf(at, i), "takes none of the shapes, so that nothing would be measured of it (add a shape that it takes, or delete the entry)")
		}
	}
	c.checkAlike()
}

// edges returns secret problems just outside the limits of the chosen variants: they show an entry
// that is off by one, and hardly any other problem does.
func (m *Manifest) edges() []trial {
	var trials []trial
	sample := m.secretSample(Choice)
	for _, part := range m.Parts(Choice, "") {
		v, _ := m.Variant(part)
		for _, name := range slices.Sorted(maps.Keys(v.Limits)) {
			limit := v.Limits[name]
			for _, value := range []int{limit.least() - 1, limit.most() + 1} {
				if !m.Secret[name].Contains(value) {
					continue
				}
				for _, dims := range sample {
					dims = slices.Clone(dims)
					dims[slices.IndexFunc(dims, func(d Dim) bool { return d.Name == name })].Value = value
					trials = append(trials, trial{where: "a secret shape, " + dims.String(), dims: dims})
				}
			}
		}
	}
	return trials
}

// checkAlike keeps the choice out of the problem: an argument is the same for every variant.
func (c *checker) checkAlike() {
	m, first := c.m, c.m.Choose[0].Variant
	was := m.ToggleValues(first)
	for i, entry := range m.Choose {
		is := m.ToggleValues(entry.Variant)
		for j := range m.Arguments {
			for _, name := range m.Arguments[j].asks() {
				if value, isToggle := is[name]; isToggle && value != was[name] {
					c.errorf(itemOf(c.n.Child("choose"), i).Child("variant"), "the argument %s differs from that of %s: %s is %d and %d (choose among variants that agree on it)", m.Arguments[j].Name, first, name, value, was[name])
				}
			}
		}
	}
}
