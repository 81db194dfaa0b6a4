package gates

import "github.com/kernelgate/kernelgate/gates/stats"

// expectedBias is how far two copies of one kernel are expected to differ for a whole run, before
// the control of the run is taken into account: addresses and loading order are the same in every
// round, so that more rounds do not average the difference out. The recorded controls of an H200
// differ by 0.04 % to 0.26 % (standard deviation over runs, by shape), and TestRecordedControls
// compares this figure with all of them. Three degrees of freedom make it weak on a different
// machine: a control that is far off outweighs it.
var expectedBias = stats.RunBias{Scale: 0.0012, Dof: 3}

// separateBias is the same where every side has a separate process, with a new order and new
// addresses in every round. On an H200 the remaining bias is not significantly different from zero;
// TestControlsApart compares the figure with the recorded controls.
var separateBias = stats.RunBias{Scale: 0.0003, Dof: 3}

// offset is how far the figures of a shape, or of the sum over shapes, may be off for the whole run.
func (s *shapeComparison) offset() stats.RunBias {
	if s.sum != nil {
		return s.sum.bias()
	}
	return s.runBias()
}

// runBias is how far the candidate's figures may be off for the whole run, as the control shows it:
// the candidate is one more copy, placed by the same random process. A control that is off by x
// widens the interval by more than x at every error rate that a policy can ask for, so a baseline
// that is slow by that much for the run does not make a candidate pass.
func (s *shapeComparison) runBias() stats.RunBias {
	expected := expectedBias
	if s.separate {
		expected = separateBias
	}
	if s.control != nil {
		expected = expected.Seen(s.control)
	}
	expected.Most = s.rounding()
	return expected
}
