package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Where a side chooses by problem size, a change of one variant does not change the code of the
// shapes that the rest of the variants serve. There is nothing to measure on those shapes, and
// nothing to gain.

// settled reports whether equal code at a shape answers a goal without a measurement. A bound on a
// time in microseconds needs one, and so does the weighted sum.
func (e *Evidence) settled(g goalOf) bool {
	return slices.Contains(e.SameShapes, g.shape.Name) && !g.goal.Timed() && g.role != RoleInfo
}

// splitGoals separates the goals that have to be measured from those that equal code answers.
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

// sameShapes decides by the shapes with equal code, where that is enough: a gain that is asked there
// is missed.
func (j *judgement) sameShapes(open, settled []goalOf) (GateResult, bool) {
	var names []string
	var asked *policy.Goal // of the first of them
	for _, g := range settled {
		row := Comparison{Shape: g.shape.Name, Dims: g.shape.Dims, Secret: g.shape.Secret, Of: g.shape.Of, Context: g.shape.Context, Role: g.role, Goal: g.goal.String(), Status: Passed, Same: true}
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
