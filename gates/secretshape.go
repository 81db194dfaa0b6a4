package gates

import (
	"fmt"
	"slices"
	"strings"
)

// A kernel can be fast on the shapes that the manifest names and slow on all others. So one
// problem size that nobody knew when the code was written is timed in every round, under
// the guard. These are the words for it.

// Label is the shape as people read it. The name of a secret shape says nothing without
// its size.
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

// winBack says what to do about the time that a shape has lost. The author has never seen
// the size of a secret shape, so a second step is the command that times that size again.
func (s *shapeComparison) winBack(e *Evidence) []string {
	g := s.goalOf
	text := s.bring()
	if text == "" && s.belowKindFloor() {
		text = s.bringKinds()
	}
	if text == "" {
		text = fmt.Sprintf("win back the time on %s (asked %s)", g.shape.Label(), g.goal)
	}
	if !g.shape.Secret {
		return []string{text}
	}
	steps := []string{text + ": the size was drawn for this run, so the kernel must be as fast on sizes that the manifest does not name"}
	lines := strings.Split(strings.TrimSpace(e.Provenance.Command), "\n")
	if again := lines[len(lines)-1]; again != "" {
		steps = append(steps, fmt.Sprintf("time this size again with: %s --secret-shape %s", again, strings.ReplaceAll(g.shape.Dims, " ", ",")))
	}
	return steps
}
