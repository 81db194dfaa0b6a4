package gates

import "github.com/kernelgate/kernelgate/gates/stats"

// expectedBias is how far two copies of one kernel are expected to lie apart for a
// whole run, before the run's own control has spoken: where they were loaded and which
// came first is the same in every round, so that more rounds do not average it out.
// The recorded controls of an H200 lie apart by 0.04 % to 0.26 % (standard deviation
// over runs, by shape), and TestRecordedControls holds the figure here against all of
// them. Three degrees of freedom say how little it is worth on another machine: a
// control that is far off outweighs it.
var expectedBias = stats.RunBias{Scale: 0.0012, Dof: 3}

// separateBias is the same where every side has a process of its own, with another
// order and other places in every round: what is left of it on an H200 cannot be
// told from nothing, and TestControlsApart holds that against what was recorded.
var separateBias = stats.RunBias{Scale: 0.0003, Dof: 3}

// runBias is what the candidate's figures may be off for the whole run, by what the
// control shows: the candidate is one more copy, placed by the same dice. A control
// that is off by x widens the interval by more than x at every error rate that a
// policy can ask for, so that a baseline which is itself that much slow does not
// make a candidate pass.
func (s *shapeComparison) runBias() stats.RunBias {
	expected := expectedBias
	if s.separate {
		expected = separateBias
	}
	if s.control == nil {
		return expected
	}
	return expected.Seen(s.control)
}
