package manifest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Scratched is the access of scratch: memory by which the kernels of a launch pass results to each
// other. No argument of a manifest has it.
const Scratched Access = "scratch"

// Every launch of a timed batch has its own scratch, on each side.
const (
	maxScratch   = 1 << 30 // bytes of all that a launch uses
	maxScratches = 16
)

// A Scratch is an array that only the launch uses: it is poisoned before every launch, never
// compared, and not an argument of the reference. A kernel may split its work in any way, so
// scratch belongs to the implementation.
type Scratch struct {
	Name  string `yaml:"name" required:"true" eg:"partial" bounds:"(a C identifier)" doc:"Name for steps and for fields of structs."`
	DType DType  `yaml:"dtype" required:"true" eg:"f32" doc:"Format of an element."`
	Shape []Expr `yaml:"shape" required:"true" eg:"[SPLITS, H, S, D]" bounds:"1 to 8 entries" doc:"Axes of the array. Each is an expression over the dims and the toggles."`
}

func (s *Scratch) ValidateStrict(n *strict.Node) {
	if n.Has("name") {
		checkIdentifier(n.Child("name"), s.Name)
	}
	if s.DType.Packed() {
		n.Child("dtype").Errorf("%s has two elements to a byte, which scratch has not (write u8)", s.DType)
	}
	if n.Clean() && (len(s.Shape) == 0 || len(s.Shape) > maxAxes) {
		n.Child("shape").Errorf("has %d axes (write 1 to %d)", len(s.Shape), maxAxes)
	}
}

// argument returns scratch as an argument of a kernel.
func (s *Scratch) argument() *Argument {
	return &Argument{Name: s.Name, DType: s.DType, Access: Scratched, Shape: s.Shape}
}

// ScratchOf returns the scratch that a variant's launch uses, as arguments: what its steps name,
// and what their structs point to.
func (m *Manifest) ScratchOf(variant string) []*Argument {
	v, _ := m.Variant(variant)
	var used []*Argument
	names := m.handed(m.stepsOf(v))
	for i := range m.Scratch {
		if names[m.Scratch[i].Name] {
			used = append(used, m.Scratch[i].argument())
		}
	}
	return used
}

// passable finds an argument or scratch by its name.
func (m *Manifest) passable(name string) (*Argument, bool) {
	if a, ok := m.argument(name); ok {
		return a, true
	}
	i := slices.IndexFunc(m.Scratch, func(s Scratch) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return m.Scratch[i].argument(), true
}

// passables returns the names of everything that a kernel can be passed.
func (m *Manifest) passables() []string {
	return append(m.argumentNames(), mapped(m.Scratch, func(s Scratch) string { return s.Name })...)
}

// settable returns the names of what a memset may set, and a copy fill.
func (m *Manifest) settable() []string {
	return slices.DeleteFunc(m.passables(), func(name string) bool {
		a, _ := m.passable(name)
		return a.Access != Out && a.Access != Scratched
	})
}

// checkScratch checks that scratch has unique names, and is used.
func (c *checker) checkScratch() {
	m, list := c.m, c.n.Child("scratch")
	if m.Mode != ModeCUDA || !list.List() {
		return
	}
	if len(m.Scratch) > maxScratches {
		c.errorf(list, "has %d arrays (write at most %d)", len(m.Scratch), maxScratches)
		return
	}
	used := mapped(m.Variants, func(v Variant) map[string]bool { return m.handed(m.stepsOf(v)) })
	for i, s := range m.Scratch {
		at := itemOf(list, i)
		if s.Name == "" {
			continue
		}
		_, argument := m.argument(s.Name)
		switch {
		case argument:
			c.errorf(at.Child("name"), "%q is the name of an argument too (choose another)", s.Name)
		case slices.ContainsFunc(m.Scratch[:i], func(other Scratch) bool { return other.Name == s.Name }):
			c.errorf(at.Child("name"), "%q is the name of earlier scratch too (choose another)", s.Name)
		case s.Name == m.Entry:
			c.errorf(at.Child("name"), "%q is the kernel's entry too (choose another)", s.Name)
		case c.n.Clean() && !slices.ContainsFunc(used, func(names map[string]bool) bool { return names[s.Name] }):
			c.errorf(at.Child("name"), "no kernel is passed %s (name it in the args of a launch or a step, or delete it)", s.Name)
		}
	}
}

// scratchSize bounds what a launch uses.
func (m *Manifest) scratchSize(used []*Argument, t trial) error {
	sum := int64(0)
	for _, a := range used {
		shape, err := m.ShapeOf(a, t.dims, t.toggles)
		if err != nil {
			return nil // the shape itself is reported
		}
		if sum += int64(a.DType.Size()) * product(shape); sum > maxScratch {
			last := &a.Shape[len(a.Shape)-1]
			return &fault{last, fmt.Sprintf("makes scratch of %d bytes", sum), fmt.Sprintf("make it %d or fewer in all", maxScratch)}
		}
	}
	return nil
}

// stepFields are the keys of a step.
var stepFields = mapped(strict.Fields(reflect.TypeFor[Step]()), func(f strict.Field) string { return f.Name })
