package tensor

import (
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// Compare compares got, elements of d, with want. An element is bad if |got − want| > Abs +
// Rel·|want|. An integer that equals the poison pattern counts as unwritten only if it is also
// beyond the tolerance, because it may be the right result.
//
// An element that cannot be subtracted is a fault: it is still poisoned, or it is not finite where
// the reference is finite, or the other way round, or it is a different infinity. Faults are bad,
// are counted by kind, and are left out of MaxAbs, MeanAbs and Norm, so that those describe the
// rest. The kinds do not overlap: a poisoned element is Unwritten, not NaN. An element that is NaN
// like its reference, or the same infinity, is neither bad nor part of the figures.
//
// Norm is ‖got − want‖₂ / ‖want‖₂, and 0 if both are 0. Every float in the result is finite,
// because JSON has no infinity: math.MaxFloat64 replaces Inf, for example in Norm if only the
// reference is 0.
func Compare(d manifest.DType, got []byte, want []float64, tol manifest.Tolerance) (gates.Errors, error) {
	if len(got) != d.Bytes(len(want)) {
		return gates.Errors{}, fmt.Errorf("compare %s output: %d bytes for a reference of %d elements, want %d: check the output's shape",
			d, len(got), len(want), d.Bytes(len(want)))
	}
	if err := validate(tol); err != nil {
		return gates.Errors{}, fmt.Errorf("compare %s output: %w", d, err)
	}

	c := comparison{poison: patternOf(d), got: got, Errors: gates.Errors{Elements: len(want)}}
	var values [512]float64
	for start := 0; start < len(want); start += len(values) {
		n := min(len(values), len(want)-start)
		Decode(d, values[:n], got[d.Bytes(start):d.Bytes(start+n)])
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

// A comparison accumulates the errors of an output.
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

// A norm accumulates a Euclidean norm. Squares of the largest and smallest float64s overflow or
// underflow, so they are summed separately, scaled by a power of two. A reference of 1e-200 is
// small, not zero.
type norm struct {
	small, middle, big float64
}

const (
	// Between these bounds, 2⁶⁴ squares can be summed without loss.
	squareLow, squareHigh = 0x1p-480, 0x1p+480
	shift                 = 600
	shrink, grow          = 0x1p-600, 0x1p+600
)

// add adds a magnitude.
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

// value returns the norm as m·2ᵉ. A class two steps below another is too small to matter.
func (n *norm) value() (m float64, e int) {
	switch {
	case n.big > 0:
		return math.Sqrt(n.big + float64(n.middle*shrink*shrink)), shift
	case n.middle > 0:
		return math.Sqrt(n.middle + float64(n.small*shrink*shrink)), 0
	}
	return math.Sqrt(n.small), -shift
}

// ratio returns a/b, with 0/0 = 0 and anything else over 0 = +Inf.
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
