package manifest

import (
	"cmp"
	"slices"
)

// holdings is which arguments structs hold. It is found once for a manifest: every step of every variant asks.
type holdings struct {
	pointees map[string][]string // by the struct: the arrays that it points to, and those of the structs within it
	inside   map[string]bool     // arrays and structs that a struct's field passes
	passed   []string            // all other arguments, in order
}

// findHoldings looks through all structs.
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

// held is what findHoldings has found. A manifest that was not read from a file has to be looked through again.
func (m *Manifest) held() *holdings {
	if m.holdings != nil {
		return m.holdings
	}
	return m.findHoldings()
}

// pointsTo is the arrays that a struct points to, those within it as well.
func (m *Manifest) pointsTo(name string) []string { return m.held().pointees[name] }

// Inside tells whether an array or a struct is passed by a struct's field, and not as a parameter of its own.
func (m *Manifest) Inside(name string) bool { return m.held().inside[name] }

// passed is the arguments that a kernel is passed which names none.
func (m *Manifest) passed() []string { return slices.Clone(m.held().passed) }

// handed is the names of all that the kernels among some steps are passed, and what structs among it point to.
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
