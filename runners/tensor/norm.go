package tensor

import "math"

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
