package manifest

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// fewValues is the most values of a dim that is a choice, such as a head dim of 64 or 128, and not
// a size.
const fewValues = 4

// DrawSecret draws n shapes that no author has seen, all supported by the variant: each dim from
// its secret range within the variant's limits, or the value of the variant's first shape if it has
// none. The values of a choice are dealt like cards: none repeats before all have come. The first
// and every second shape after it are ragged in every other dim that allows it, because kernels are
// usually wrong on sizes that do not fill tiles. The same state of rng gives the same shapes.
func (m *Manifest) DrawSecret(variant string, rng *rand.Rand, n int) []Shape {
	shapes := make([]Shape, max(0, n))
	choices := decks{}
	for i := range shapes {
		shapes[i] = Shape{Name: "secret" + strconv.Itoa(i+1), Dims: m.secretDims(variant, func(dim string, r Range) int {
			if values := r.few(fewValues); values != nil {
				return choices.deal(dim, values, rng)
			}
			if i%2 == 0 {
				return r.drawRagged(rng)
			}
			return r.draw(rng)
		})}
	}
	return shapes
}

// DrawSizes draws n sizes to time, as DrawSecret draws shapes. Each draw picks with equal chance
// among ragged sizes, sizes in whole tiles and any size: a kernel that is slow on one of these
// kinds must not be able to rely on another kind being drawn.
func (m *Manifest) DrawSizes(variant string, rng *rand.Rand, n int) []Dims {
	sizes := make([]Dims, max(0, n))
	choices := decks{}
	for i := range sizes {
		kind := rng.IntN(3)
		sizes[i] = m.secretDims(variant, func(dim string, r Range) int {
			switch values := r.few(fewValues); {
			case values != nil:
				return choices.deal(dim, values, rng)
			case kind == 0:
				return r.drawRagged(rng)
			case kind == 1:
				return r.drawWhole(rng)
			}
			return r.draw(rng)
		})
	}
	return sizes
}

// decks holds the values of each choice that have not come since the last full round.
type decks map[string][]int

func (d decks) deal(dim string, values []int, rng *rand.Rand) int {
	if len(d[dim]) == 0 {
		rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		d[dim] = values
	}
	top := d[dim][0]
	d[dim] = d[dim][1:]
	return top
}

// secretDims returns the dims of the variant's first shape, with pick's value for those that have a
// secret range.
func (m *Manifest) secretDims(variant string, pick func(dim string, r Range) int) Dims {
	shapes := m.ShapesFor(variant)
	if len(shapes) == 0 {
		return nil
	}
	v, _ := m.Variant(variant)
	dims := slices.Clone(shapes[0].Dims)
	for i, dim := range dims {
		r, ok := m.Secret[dim.Name]
		if !ok {
			continue
		}
		if limit, ok := v.Limits[dim.Name]; ok {
			r = r.and(limit)
		}
		dims[i].Value = pick(dim.Name, r)
	}
	return dims
}

// secretTrials is how many secret shapes are tried in addition to the smallest and the largest.
const secretTrials = 16

// secretSample returns the corners of the secret ranges and some shapes between, always the same,
// so that the result of a check does not depend on chance.
func (m *Manifest) secretSample(variant string) []Dims {
	if len(m.Secret) == 0 {
		return nil
	}
	sample := []Dims{
		m.secretDims(variant, func(_ string, r Range) int { return r.least() }),
		m.secretDims(variant, func(_ string, r Range) int { return r.most() }),
	}
	for _, s := range m.DrawSecret(variant, rand.New(rand.NewPCG(1, 2)), secretTrials) {
		sample = append(sample, s.Dims)
	}
	return sample
}
