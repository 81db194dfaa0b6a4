package gates

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// A kernel can be fast on the shapes that the manifest names and slow on all remaining ones. So
// every round also times one problem size that was drawn for the run, under the guard. This file
// names it and advises its author.

// Label is the shape as people read it. A secret shape has its size in the label.
func (s Shape) Label() string { return label(s.Name, s.Dims, s.Secret) }

// Label is the shape as people read it.
func (c Comparison) Label() string { return label(c.Shape, c.Dims, c.Secret) }

func label(name, dims string, secret bool) string {
	if secret {
		return name + " (" + dims + ")"
	}
	return name
}

// labelOf is the label of a shape that is known by its name.
func (e *Evidence) labelOf(name string) string {
	if i := slices.IndexFunc(e.Shapes, func(s Shape) bool { return s.Name == name }); i >= 0 {
		return e.Shapes[i].Label()
	}
	return name
}

// regainSteps is the advice for a shape that has lost time. The author has never seen the size of a
// secret shape, so a second step is the command that times that size again.
func (s *shapeComparison) regainSteps(e *Evidence) []facts.Advice {
	g := s.goalOf
	step := s.timeToReach()
	if step == nil && s.belowKindFloor() {
		step = s.kindTimesToReach()
	}
	if step == nil {
		step = facts.WinBack{Shape: g.shape.Label(), Asked: g.goal.String()}
	}
	if !g.shape.Secret {
		return []facts.Advice{step}
	}
	steps := []facts.Advice{facts.OnUnseenSize{Advice: step}}
	lines := strings.Split(strings.TrimSpace(e.Provenance.Command), "\n")
	if again := lines[len(lines)-1]; again != "" {
		steps = append(steps, facts.TimeSizeAgain{Command: again, Dims: g.shape.Dims})
	}
	return steps
}
