package gates

import (
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// checkRunner looks for faults of the runner that make the figures worthless.
func (c *comparison) checkRunner(gate *policy.PerformanceGate) {
	var low, high []float64
	var where []*shapeComparison
	for _, s := range c.shapes {
		if fault := s.coarseClock(); fault != nil {
			c.fault = fault
		}
		if s.control == nil {
			continue
		}
		where = append(where, s)
		low = append(low, s.control.PBelow(1-float64(gate.Control)))
		high = append(high, s.control.PAbove(1+float64(gate.Control)))
	}
	for _, p := range [][]float64{low, high} {
		for i, off := range stats.Holm(p, c.alpha) {
			if off {
				s := where[i]
				c.fault = facts.ControlOff{Shape: s.shape.Label(), Control: speedupOf(s.control, c.alpha), Allowed: gate.Control.String()}
			}
		}
	}
}

// checkMarks finds a shape of which most samples were disturbed. It needs no decided comparison:
// where all samples are disturbed, no comparison is ever decided.
func (c *comparison) checkMarks() {
	for _, s := range c.shapes {
		if fault := s.samples.marks.fault(s.shape.Label()); fault != nil {
			c.fault = fault
		}
	}
}
