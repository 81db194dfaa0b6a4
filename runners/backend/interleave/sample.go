package interleave

import (
	"math"
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
)

// Twice returns the tolerance that two outputs keep of each other if both keep the given tolerance
// of the reference.
func Twice(of runners.ToleranceOf) runners.ToleranceOf {
	return func(output string) manifest.Tolerance { return twice(of(output)) }
}

// twice: with |x - r| <= a + b·|r| for both, they are at most 2a + 2b·|r| apart, and |r| is at most
// (|x| + a) / (1 - b). For b >= 1 there is no such bound.
func twice(t manifest.Tolerance) manifest.Tolerance {
	if t.Rel >= 1 {
		return manifest.Tolerance{Abs: math.MaxFloat64}
	}
	const slack = 1 + 1e-9 // for the rounding of the comparisons
	return manifest.Tolerance{
		Abs: min(2*t.Abs/(1-t.Rel)*slack, math.MaxFloat64),
		Rel: min(2*t.Rel/(1-t.Rel)*slack, math.MaxFloat64),
	}
}

// Room returns how many pairs of outputs of the given size may be kept, at most and at least as
// many as given.
func Room(bytes, least, most int) int {
	return max(least, min(most, maxKept/max(2*bytes, 1)))
}

// maxKept bounds the memory of the outputs that wait for the reference, in bytes.
const maxKept = 256 << 20

// A chosen output is compared with the reference.
type chosen struct {
	Kept
	dist distribution.Kind
}

// A sample keeps some of the outputs that it is offered. Each has the same chance, however many
// there are (Vitter's algorithm R).
type sample struct {
	size    int
	offered int
	kept    []chosen
}

// offer keeps an output, or does not. It may drop another for it.
func (s *sample) offer(rng *rand.Rand, keep func() (chosen, error)) error {
	s.offered++
	at := len(s.kept)
	if at >= s.size {
		if at = rng.IntN(s.offered); at >= s.size {
			return nil
		}
	}
	k, err := keep()
	if err != nil {
		return err
	}
	if at == len(s.kept) {
		s.kept = append(s.kept, k)
		return nil
	}
	s.kept[at].Drop()
	s.kept[at] = k
	return nil
}
