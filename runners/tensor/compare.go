package tensor

import (
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Compare measures got, elements of d, against want: an element is bad when |got − want| > Abs + Rel·|want|. An integer
// that equals the poison pattern is unwritten only if it is also beyond the tolerance: it may be the right answer.
//
// An element that cannot be subtracted is a fault: still poisoned, or not finite where the reference is (or
// the other way round, or another infinity). Faults are bad, counted by kind, and left out of MaxAbs, MeanAbs
// and Norm, so that those keep describing the rest. The kinds do not overlap: a poisoned element is Unwritten, not
// NaN. An element that is NaN, or the same infinity, as its reference is neither bad nor part of the figures.
//
// Norm is ‖got − want‖₂ / ‖want‖₂: 0 when both are 0. Every float is finite, because JSON knows nothing else: what would
// be Inf, as Norm where the reference alone is 0, is math.MaxFloat64.
func Compare(d manifest.DType, got []byte, want []float64, tol manifest.Tolerance) (gates.Errors, error) {
	if len(got) != len(want)*d.Size() {
		return gates.Errors{}, fmt.Errorf("compare %s output: %d bytes for a reference of %d elements, want %d: check the output's shape",
			d, len(got), len(want), len(want)*d.Size())
	}
	if err := validate(tol); err != nil {
		return gates.Errors{}, fmt.Errorf("compare %s output: %w", d, err)
	}

	c := comparison{poison: patternOf(d), got: got, Errors: gates.Errors{Elements: len(want)}}
	var values [512]float64
	for start := 0; start < len(want); start += len(values) {
		n := min(len(values), len(want)-start)
		Decode(d, values[:n], got[start*d.Size():(start+n)*d.Size()])
		for i, w := range want[start : start+n] {
			c.element(start+i, values[i], w, tol)
		}
	}
	c.finish()
	return c.Errors, nil
}

func validate(t manifest.Tolerance) error {
	for _, x := range []float64{t.Abs, t.Rel} {
		if !(x >= 0 && x <= math.MaxFloat64) { // a NaN here would let everything pass
			return fmt.Errorf("tolerance abs %v, rel %v: use finite numbers of 0 or more", t.Abs, t.Rel)
		}
	}
	return nil
}

// A comparison is errors in the making.
type comparison struct {
	gates.Errors
	poison pattern
	got    []byte

	compared              int
	sumAbs                float64
	difference, reference norm // of the compared elements
}

func (c *comparison) element(i int, got, want float64, tol manifest.Tolerance) {
	diff := math.Abs(got - want)
	if !(diff <= math.MaxFloat64) && !(isFinite(got) && isFinite(want)) {
		c.nonFinite(i, got, want)
		return
	}
	if !(diff <= tol.Abs+float64(tol.Rel*math.Abs(want))) {
		if c.poison.at(c.got, i) { // an integer: poisoned floats are NaN
			c.Bad++
			c.Unwritten++
			return
		}
		c.Bad++
	}
	c.MaxAbs = max(c.MaxAbs, diff)
	c.compared++
	c.sumAbs += diff
	c.difference.add(diff)
	c.reference.add(math.Abs(want))
}

func (c *comparison) nonFinite(i int, got, want float64) {
	switch {
	case c.poison.at(c.got, i):
		c.Unwritten++
	case got == want || got != got && want != want:
		return
	case got != got:
		c.NaN++
	case math.IsInf(got, 0):
		c.Inf++
	}
	c.Bad++
}

func (c *comparison) finish() {
	if c.compared > 0 {
		c.MeanAbs = storable(c.sumAbs / float64(c.compared))
	}
	c.Norm = storable(ratio(&c.difference, &c.reference))
	c.MaxAbs = storable(c.MaxAbs)
}

func isFinite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

func storable(x float64) float64 { return min(x, math.MaxFloat64) }

// A norm is a Euclidean one in the making. Squares of the largest and smallest float64s leave its range, so they
// are summed apart, scaled by a power of two: a reference of 1e-200 is small, not zero.
type norm struct {
	small, middle, big float64
}

const (
	squareLow, squareHigh = 0x1p-480, 0x1p+480 // between them, 2⁶⁴ squares can be summed without loss
	shift                 = 600
	shrink, grow          = 0x1p-600, 0x1p+600
)

// add takes a magnitude.
func (n *norm) add(x float64) {
	switch {
	case x > squareHigh:
		x *= shrink
		n.big += float64(x * x)
	case x < squareLow:
		x *= grow
		n.small += float64(x * x)
	default:
		n.middle += float64(x * x)
	}
}

// value is m·2ᵉ. A class two steps down cannot matter next to one above.
func (n *norm) value() (m float64, e int) {
	switch {
	case n.big > 0:
		return math.Sqrt(n.big + float64(n.middle*shrink*shrink)), shift
	case n.middle > 0:
		return math.Sqrt(n.middle + float64(n.small*shrink*shrink)), 0
	}
	return math.Sqrt(n.small), -shift
}

// ratio is a/b, with 0/0 = 0 and anything else over 0 = +Inf.
func ratio(a, b *norm) float64 {
	top, e := a.value()
	bottom, f := b.value()
	switch {
	case top == 0:
		return 0
	case bottom == 0:
		return math.Inf(1)
	}
	return math.Ldexp(top/bottom, e-f)
}
