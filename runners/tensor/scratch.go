package tensor

import (
	"fmt"
	"math/rand/v2"

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

// notANumber is the bits that make any value of a format a NaN; none for those that have none.
var notANumber = map[kernels.DType]uint64{
	kernels.E4M3: 0x7F, kernels.E5M2: 0x7D, kernels.F16: 0x7C01, kernels.BF16: 0x7F81, kernels.F32: 0x7F80_0001, kernels.F64: 0x7FF0_0000_0000_0001,
}

// Litter fills scratch with what nobody can foresee: NaNs of any payload, and any integers. A
// kernel that knew what a counter begins with, or could tell it from another element, would save
// the step that sets it.
func Litter(d kernels.DType, dst []byte, rng *rand.Rand) {
	var mask uint64
	size := d.Size()
	for i := 0; i < 8; i += size {
		mask |= notANumber[d] << (8 * i)
	}
	var word [8]byte
	for i := 0; i < len(dst); i += 8 {
		le.PutUint64(word[:], rng.Uint64()|mask)
		copy(dst[i:], word[:])
	}
}
