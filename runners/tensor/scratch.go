package tensor

import (
	"fmt"

	"github.com/kernelgate/kernelgate/kernels"
)

// Scratch is the arrays that a variant's launch uses beside its arguments. They are no part
// of the problem: each side has its own.
func Scratch(m *kernels.Manifest, variant string, shape kernels.Shape, toggles map[string]int) ([]Arg, error) {
	var all []Arg
	for _, a := range m.ScratchOf(variant) {
		arg, err := outline(m, a, shape, toggles)
		if err != nil {
			return nil, fmt.Errorf("preparing scratch %s of %s for %s: %w", a.Name, m.Name, shape, err)
		}
		all = append(all, arg)
	}
	return all, nil
}
