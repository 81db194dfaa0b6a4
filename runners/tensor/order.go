package tensor

import (
	"math"
	"math/bits"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

// This file draws values that are bounded, or that depend on each other. Each value is still a
// function of the key and of its index only: a permutation is a cipher of the index, and an
// ascending sequence is a sum that is split in two again and again on the way down to the index. So
// a device can draw all values in parallel.

// exact fills an array as a filling specifies. whole means that its values are integers.
func (k Key) exact(dst []float64, f manifest.Filling, whole bool, shape []int) {
	n, width := uint64(len(dst)), uint64(1)
	if len(shape) > 0 {
		width = uint64(shape[len(shape)-1])
	}
	if !f.Rows {
		width = n
	}
	values := uint64(f.Most-f.Least) + 1 // of integers
	rows, columns := Matrix(shape)
	for i := range dst {
		place := uint64(i)
		switch f.Draw {
		case distribution.Uniform:
			if whole {
				dst[i] = f.Least + float64(k.among(place, n, values))
			} else {
				dst[i] = k.between(place, f.Least, f.Most)
			}
		case distribution.Kind(manifest.Permutation):
			dst[i] = f.Least + float64(k.permuted(place/width, place%width, values))
		case distribution.Kind(manifest.Offsets):
			dst[i] = k.ascending(place/width, place%width, width, f.Total, f.Lengths[0], f.Lengths[1])
		case distribution.Kind(manifest.Sorted):
			dst[i] = k.sorted(place, width, values, f, whole)
		case distribution.Kind(manifest.Mask), distribution.Kind(manifest.Causal):
			dst[i] = masked(k.masks(place, f, uint64(rows), uint64(columns)), whole)
		}
	}
}

// among returns a number below values. Of n numbers one is the smallest and another the largest, at
// random places, so that a kernel that is wrong at the limits is wrong in every launch. If n is 1,
// the number is a limit in half of the draws.
func (k Key) among(place, n, values uint64) uint64 {
	low, _ := bits.Mul64(k.bits(places), n)
	if n == 1 {
		switch k.bits(places+1) & 3 {
		case 0:
			return 0
		case 1:
			return values - 1
		}
	} else {
		step, _ := bits.Mul64(k.bits(places+1), n-1)
		switch place {
		case low:
			return 0
		case (low + 1 + step) % n:
			return values - 1
		}
	}
	v, _ := bits.Mul64(k.bits(place), values)
	return v
}

// between returns a real number from least to most.
func (k Key) between(place uint64, least, most float64) float64 {
	unit := (k.uniform(int(place)) + 1) * 0.5
	return least + float64((most-least)*unit)
}

const cipherRounds = 6

// permuted returns the number below values that an index maps to in one of many permutations. It is
// a Feistel cipher over an even number of bits, repeated until the result is below values, and then
// shifted by a number drawn for the row.
func (k Key) permuted(row, place, values uint64) uint64 {
	half := uint(1)
	for uint64(1)<<(2*half) < values {
		half++
	}
	mask := uint64(1)<<half - 1
	for x := place; ; {
		left, right := x>>half, x&mask
		for round := range uint64(cipherRounds) {
			left, right = right, left^k.bits((row*cipherRounds+round)<<27|right)&mask
		}
		if x = left<<half | right; x < values {
			shift, _ := bits.Mul64(k.bits(places+row), values)
			return (x + shift) % values
		}
	}
}

// ascending returns the number at an index of a row that begins with 0 and ends with total, and
// whose neighbours differ by least to most. The total is split unevenly between the halves of the
// row, and so on down to the index.
func (k Key) ascending(row, place, width uint64, total, least, most float64) float64 {
	first, last, from := uint64(0), width-1, 0.0
	switch place {
	case first:
		return 0
	case last:
		return total
	}
	for {
		steps := last - first
		left := steps / 2
		cut := k.split(places+row*width+first+left, float64(left), float64(steps), total, least, most)
		switch middle := first + left; {
		case place == middle:
			return from + cut
		case place < middle:
			last, total = middle, cut
		default:
			first, from, total = middle, from+cut, total-cut
		}
	}
}

// split returns the part of a total that the left of the steps get: half to one and a half times
// their proportional share. Of two steps, one sometimes gets everything.
func (k Key) split(n uint64, left, steps, total, least, most float64) float64 {
	draw := k.bits(n)
	uneven, rounding := float64(draw>>40)*0x1p-24, float64(draw>>16&0xFFFFFF)*0x1p-24
	cut := math.Floor(float64(float64(total*(left/steps))*(0.5+uneven)) + rounding)
	if steps == 2 && draw&7 == 0 {
		cut = 0
		if draw&8 != 0 {
			cut = total
		}
	}
	right := steps - left
	cut = max(cut, float64(left*least), total-float64(right*most))
	return min(cut, float64(left*most), total-float64(right*least))
}

// sortedSteps is the resolution of sorted real numbers.
const sortedSteps = 1 << 52

// sorted returns a value of a row that ascends from least to most. In a row of one it is any value.
func (k Key) sorted(place, width, values uint64, f manifest.Filling, whole bool) float64 {
	if !whole {
		if width == 1 {
			return k.between(place, f.Least, f.Most)
		}
		at := k.ascending(place/width, place%width, width, sortedSteps, 0, sortedSteps) * (1.0 / sortedSteps)
		return f.Least + float64((f.Most-f.Least)*at)
	}
	if width == 1 {
		return f.Least + float64(k.among(place, 1, values))
	}
	total := float64(values - 1)
	return f.Least + k.ascending(place/width, place%width, width, total, 0, total)
}

// masks reports whether an element is masked. A random mask leaves one element of every row
// unmasked, unless whole rows may be masked.
func (k Key) masks(place uint64, f manifest.Filling, rows, columns uint64) bool {
	if f.Draw == distribution.Kind(manifest.Causal) {
		diagonal := place / columns % rows
		if columns > rows {
			diagonal += columns - rows
		}
		return place%columns > diagonal
	}
	if columns == 1 { // a vector is one row
		columns = rows
	}
	kept, _ := bits.Mul64(k.bits(places+place/columns), columns)
	return float64(k.bits(place)>>11)*0x1p-53 < f.Share && (f.WholeRows || place%columns != kept)
}

func masked(is, whole bool) float64 {
	switch {
	case whole && is:
		return 0
	case whole:
		return 1
	case is:
		return math.Inf(-1)
	}
	return 0
}
