package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Where a side chooses by problem size, a change of one variant leaves the shapes that others serve as they were: the machine code
// is equal there and started in the same way. They have nothing to measure, and nothing to gain.

// settled tells whether equal code at a shape answers a goal without a clock: what is asked of a time by itself needs one.
func (e *Evidence) settled(g goalOf) bool {
	return slices.Contains(e.SameShapes, g.shape.Name) && !g.goal.Timed()
}

// splitGoals is the goals that have to be measured, and settled those that equal code answers.
func (e *Evidence) splitGoals(goals []goalOf) (open, settled []goalOf) {
	for _, g := range goals {
		if e.settled(g) {
			settled = append(settled, g)
		} else {
			open = append(open, g)
		}
	}
	return open, settled
}

// sameShapes decides by the shapes that did not change, where that is enough: a gain that is asked of one is not there.
func (j *judgement) sameShapes(open, settled []goalOf) (GateResult, bool) {
	var names []string
	var asked *policy.Goal // of the first of them
	for _, g := range settled {
		row := Comparison{Shape: g.shape.Name, Dims: g.shape.Dims, Secret: g.shape.Secret, Role: g.role, Goal: g.goal.String(), Status: Passed, Same: true}
		if asksGain(g.goal) {
			row.Status = Failed
			asked, names = cmp.Or(asked, g.goal), append(names, g.shape.Label())
		}
		j.comparisons = append(j.comparisons, row)
	}
	switch {
	case len(names) > 0:
		return GateResult{
			Status: Failed, Reason: ReasonTooSlow,
			Found: facts.NothingGainedOn{Shapes: names, Asked: asked.String()}, Steps: []facts.Advice{facts.ChangeVariant{Shapes: names}},
		}, true
	case len(open) == 0 && len(settled) > 0:
		return GateResult{Status: Passed, Found: facts.NoShapeToMeasure{}}, true
	}
	return GateResult{}, false
}
