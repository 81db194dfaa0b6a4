package manifest

import (
	"cmp"
	"slices"
)

// holdings says which arguments are in structs. It is computed once for a manifest, because every
// step of every variant needs it.
type holdings struct {
	pointees map[string][]string // by the struct: the arrays that it points to, and those of the structs within it
	inside   map[string]bool     // arrays and structs that a struct's field passes
	passed   []string            // all other arguments, in order
}

// findHoldings searches all structs.
func (m *Manifest) findHoldings() *holdings {
	h := &holdings{pointees: map[string][]string{}, inside: map[string]bool{}, passed: []string{}}
	for i := range m.Arguments {
		a, left, names := &m.Arguments[i], maxMembers, map[string]bool{}
		if _, twice := h.pointees[a.Name]; twice {
			continue // the first one is found by its name
		}
		m.members(a, 0, &left, func(f *Field) { names[cmp.Or(f.Pointer, f.TensorMap)] = true })
		for name := range names {
			h.pointees[a.Name] = append(h.pointees[a.Name], name)
		}
		slices.Sort(h.pointees[a.Name])
		for _, f := range a.Fields {
			if f.Pointer != NoPointer {
				h.inside[f.Pointer] = true
			}
			h.inside[f.Struct], h.inside[f.TensorMap] = true, true
		}
	}
	delete(h.inside, "")
	for _, a := range m.Arguments {
		if !h.inside[a.Name] {
			h.passed = append(h.passed, a.Name)
		}
	}
	return h
}

// held returns the result of findHoldings. A manifest that was not read from a file is searched
// again.
func (m *Manifest) held() *holdings {
	if m.holdings != nil {
		return m.holdings
	}
	return m.findHoldings()
}

// pointsTo returns the arrays that a struct points to, including those of structs within it.
func (m *Manifest) pointsTo(name string) []string { return m.held().pointees[name] }

// Inside reports whether an array or a struct is passed in a struct's field, and not as a separate
// parameter.
func (m *Manifest) Inside(name string) bool { return m.held().inside[name] }

// passed returns the arguments of a kernel that names none.
func (m *Manifest) passed() []string { return slices.Clone(m.held().passed) }

// handed returns the names of everything that the kernels of some steps are passed, and what their
// structs point to.
func (m *Manifest) handed(steps []Step) map[string]bool {
	names := map[string]bool{}
	for _, s := range steps {
		for _, name := range s.Args {
			if names[name] {
				continue
			}
			names[name] = true
			for _, pointee := range m.pointsTo(name) {
				names[pointee] = true
			}
		}
	}
	return names
}
