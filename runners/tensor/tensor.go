// Package tensor holds the numbers that go into a kernel and come out of it: the arguments of a
// launch by manifest, shape and seed, their encoding, pseudo-random inputs, quantisation, poison,
// and the comparison of an output with its reference. The backends and their workers use it.
//
// Values are float64 on the host's side and little-endian bytes on the kernel's side. The package
// does no I/O, allocates no device memory, runs nothing and judges nothing: it does not know
// whether an error is small enough.
//
// Callers must pass correct lengths and formats. A slice that does not match its shape, or a DType
// that no manifest may have, is a bug in the caller and panics.
package tensor

import (
	"fmt"
	"math"
)

// Elements returns the number of elements of a shape. A shape without axes is a scalar. Shapes come
// from manifest expressions, so a negative axis and a product too large to address are errors, not
// panics.
func Elements(shape []int) (int, error) {
	n, empty := 1, false
	for axis, length := range shape {
		switch {
		case length < 0:
			return 0, fmt.Errorf("shape %v: axis %d is %d: make it 0 or more", shape, axis, length)
		case length == 0:
			empty = true
		case n > math.MaxInt/8/length:
			return 0, fmt.Errorf("shape %v: more elements than memory can hold: make it smaller", shape)
		default:
			n *= length
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}
