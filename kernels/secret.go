package kernels

import (
	"math/rand/v2"
	"strconv"
)

// DrawSecret draws n shapes that no author has seen: each dim from its secret
// range, or the first shape's value where it has none. The first and every
// second one after it are ragged in every dim that allows it, because a kernel
// that is right for whole tiles alone is the usual mistake. The same state of
// rng gives the same shapes.
func (m *Manifest) DrawSecret(rng *rand.Rand, n int) []Shape {
	shapes := make([]Shape, max(0, n))
	for i := range shapes {
		shapes[i] = Shape{Name: "secret" + strconv.Itoa(i+1), Dims: m.secretDims(func(r Range) int {
			if i%2 == 0 {
				return r.drawRagged(rng)
			}
			return r.draw(rng)
		})}
	}
	return shapes
}

// secretDims are the first shape's dims, with pick's value for those that have
// a secret range.
func (m *Manifest) secretDims(pick func(Range) int) Dims {
	if len(m.Shapes) == 0 {
		return nil
	}
	dims := make(Dims, len(m.Shapes[0].Dims))
	for i, dim := range m.Shapes[0].Dims {
		if r, ok := m.Secret[dim.Name]; ok {
			dim.Value = pick(r)
		}
		dims[i] = dim
	}
	return dims
}

// secretTrials is how many secret shapes are tried beside the smallest and the
// largest.
const secretTrials = 16

// secretSample is the corners of the secret ranges and some shapes between,
// always the same: a manifest is right or wrong, not by chance.
func (m *Manifest) secretSample() []Dims {
	if len(m.Secret) == 0 {
		return nil
	}
	sample := []Dims{m.secretDims(Range.Min), m.secretDims(Range.Max)}
	for _, s := range m.DrawSecret(rand.New(rand.NewPCG(1, 2)), secretTrials) {
		sample = append(sample, s.Dims)
	}
	return sample
}
