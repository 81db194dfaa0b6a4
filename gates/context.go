package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// A goal may ask for launches with a warm cache, in addition to cold ones or in place of them. Each shape is then timed once for
// each context, and every context is a shape of its own in the evidence and in the verdict: "mission" is cold, and "mission:warm"
// is warm.

// namesIn returns the names under which the shapes are timed for a goal.
func namesIn(shapes []string, asked policy.Contexts) []string {
	var names []string
	for _, name := range shapes {
		if asked.Has(policy.Cold) {
			names = append(names, name)
		}
		if asked.Has(policy.Warm) {
			names = append(names, Shape{Name: name}.In(policy.Warm).Name)
		}
	}
	return names
}

// notTimed returns the names that the evidence has no shape for.
func (e *Evidence) notTimed(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(e.Shapes, func(s Shape) bool { return s.Name == name })
	})
}

// InContexts returns the shapes of a manifest, and after each of them the same shape in every further context that a rule asks for.
// The sum of a step counts launches in the contexts that the weights say.
func InContexts(rule *policy.Rule, shapes []Shape, weights *Weights) []Shape {
	gate := rule.Gates.Performance
	if gate == nil {
		return shapes
	}
	e := &Evidence{Shapes: shapes, Weights: weights}
	names := e.shapeNames()
	var asked []string
	for _, goal := range gate.Goals() {
		if goal.PerShape() {
			asked = append(asked, namesIn(goal.Shapes.Pick(names), goal.Context)...)
		}
	}
	if gate.Weighted() != nil {
		asked = append(asked, e.allWeighed(gate)...)
	}
	var all []Shape
	for _, s := range shapes {
		all = append(all, s)
		if warm := s.In(policy.Warm); slices.Contains(asked, warm.Name) {
			all = append(all, warm)
		}
	}
	return all
}

// wrongContext returns the field of a shape that contradicts its context.
func (s Shape) wrongContext() string {
	listed := Shape{Name: s.Of}
	switch {
	case s.Of == "" && s.Context == "":
		return ""
	case s.Context != policy.Warm:
		return "context"
	case s.Name != listed.In(s.Context).Name:
		return "of"
	case s.Secret:
		return "secret"
	}
	return ""
}
