package manifest

import (
	"slices"
)

// A trace of a program records the sizes of arrays and the grids of launches. These functions relate
// them to the manifest's shapes.

// Grids returns the grids with which the variants launch their first kernel at a problem size, each once. It is
// empty where a launch cannot be computed there.
func (m *Manifest) Grids(dims Dims) [][3]int {
	var all [][3]int
	for _, v := range m.VariantNames() {
		steps, err := m.Steps(v, dims, nil)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(steps, StepAt.Kernel)
		if i >= 0 && !slices.Contains(all, steps[i].Grid) {
			all = append(all, steps[i].Grid)
		}
	}
	return all
}

// Reads reports whether every array that the kernel reads at a problem size is among the recorded ones. Axes of one
// element are left out: a program may have them or not.
func (m *Manifest) Reads(dims Dims, recorded [][]int) bool {
	left := make([][]int, 0, len(recorded))
	for _, lengths := range recorded {
		left = append(left, withoutOnes(lengths))
	}
	found := 0
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if len(a.Shape) == 0 || a.Access != In && a.Access != InOut {
			continue
		}
		lengths, err := m.ShapeOf(a, dims, nil)
		if err != nil {
			return false
		}
		at := slices.IndexFunc(left, func(l []int) bool { return slices.Equal(l, withoutOnes(lengths)) })
		if at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
		found++
	}
	return found > 0
}

func withoutOnes(lengths []int) []int {
	return slices.DeleteFunc(slices.Clone(lengths), func(n int) bool { return n == 1 })
}

// Infer returns the dims that recorded arrays and a grid give away: those that are an axis of an array on
// their own, or else one of the grid. Dims that nothing gives away are left out.
func (m *Manifest) Infer(recorded [][]int, grid [3]int) Dims {
	known := map[string]int{}
	left := slices.Clone(recorded)
	for i := range m.Arguments {
		a := &m.Arguments[i]
		if len(a.Shape) == 0 || a.Access != In && a.Access != InOut {
			continue
		}
		at := slices.IndexFunc(left, func(lengths []int) bool { return fits(a.Shape, lengths, known) })
		if at < 0 {
			continue
		}
		for k, n := range left[at] {
			if name, ok := a.Shape[k].bare(); ok {
				known[name] = n
			}
		}
		left = slices.Delete(left, at, at+1)
	}
	if v, err := m.Variant(m.DefaultVariant); err == nil {
		for _, s := range m.stepsOf(v) {
			if s.kernel() {
				for k := range s.Grid {
					name, ok := s.Grid[k].bare()
					if _, seen := known[name]; ok && !seen {
						known[name] = grid[k]
					}
				}
				break
			}
		}
	}
	var dims Dims
	for _, name := range m.dims() {
		if n, ok := known[name]; ok {
			dims = append(dims, Dim{name, n})
		}
	}
	return dims
}

// fits reports whether an array may have these lengths, given the dims that are known.
func fits(shape []Expr, lengths []int, known map[string]int) bool {
	if len(shape) != len(lengths) {
		return false
	}
	for k := range shape {
		name, ok := shape[k].bare()
		if n, seen := known[name]; ok && seen && n != lengths[k] {
			return false
		}
	}
	return true
}
