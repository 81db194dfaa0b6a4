package manifest

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// maxWork bounds what checking one manifest costs. Anybody can send a manifest, and aliases make a large one out of a
// small file. The unit is one character of an expression, or one name that is given a value; a million of them take
// less than 0.1 s. The count depends on the manifest alone, so that a manifest is accepted everywhere or nowhere.
const maxWork = 4_000_000

// textPerValue is how many characters of an expression count as one value of the file.
const textPerValue = 8

// afford adds work to the cost of the manifest and reports whether it is still within maxWork. If
// not, it reports the most expensive field as a mistake.
func (c *checker) afford(work int, costliest func() reporter) bool {
	if c.work > maxWork {
		return false // reported already
	}
	if c.work += work; c.work <= maxWork {
		return true
	}
	c.errorf(costliest(), "costs the most of all fields to try at every shape, and the manifest costs more than is allowed: %d steps of at most %d (write shorter expressions, or fewer variants, steps, shapes or toggles)", c.work, maxWork)
	return false
}

// affordVariant does so for all values of a variant.
func (c *checker) affordVariant(v Variant, values []computed) bool {
	if len(values) == 0 {
		return true
	}
	sum := 0
	for _, value := range values {
		sum += value.cost
	}
	return c.afford(c.m.sampleWork(v)+c.m.maxTrials()*sum, func() reporter {
		return slices.MaxFunc(values, func(a, b computed) int { return a.cost - b.cost }).at(c.n)
	})
}

// affordChoice does so for a choice by problem size, which is tried on every device.
func (c *checker) affordChoice(at *strict.Node) bool {
	m := c.m
	trials := m.maxTrials()
	for _, part := range m.Parts(Choice, "") {
		v, _ := m.Variant(part)
		trials += 2 * len(v.Limits) * (secretTrials + 2)
	}
	return c.afford(m.sampleWork(Variant{})+len(m.devices())*trials*m.workOf(m.Choose), func() reporter { return at })
}

// maxTrials bounds the number of trials of a variant.
func (m *Manifest) maxTrials() int {
	if len(m.Secret) == 0 {
		return len(m.Shapes)
	}
	return len(m.Shapes) + secretTrials + 2
}

// sampleWork returns the cost of drawing the secret shapes of a variant.
func (m *Manifest) sampleWork(v Variant) int {
	spans := 0
	for name, r := range m.Secret {
		spans += len(r.spans) * max(1, len(v.Limits[name].spans))
	}
	return spans * (secretTrials + 2)
}

// workOf returns the cost of evaluating the expressions of parts of a manifest once.
func (m *Manifest) workOf(parts ...any) int {
	work := len(m.Toggles) + len(m.dims())
	for _, e := range exprsOf(parts...) {
		work += e.work()
	}
	return work
}

// work returns the cost of evaluating an expression once. A single name is only looked up.
func (e *Expr) work() int {
	if _, ok := e.bare(); ok {
		return 1
	}
	return len(e.text)
}
