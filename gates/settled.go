package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// settled is a shape that an analysis has passed and that none of the later rounds has timed; else
// nil. Its decision stands: every analysis has its own part of the error rate, so a shape that is
// judged only up to the first analysis that passes it has spent no more than a shape that is judged
// at all of them.
func (c *comparison) settled(shape string, rounds []Round) *shapeComparison {
	if c == nil {
		return nil
	}
	for _, r := range rounds[c.rounds:] {
		if slices.ContainsFunc(r.Series, func(s Series) bool { return s.Shape == shape }) {
			return nil
		}
	}
	for _, s := range c.shapes {
		if s.shape.Name == shape && s.status == Passed {
			own := *s
			own.settled = true
			return &own
		}
	}
	return nil
}

// settledAfter says after how many rounds a shape was settled; nil where it was not.
func (s *shapeComparison) settledAfter() facts.Fact {
	if !s.settled {
		return nil
	}
	return facts.Settled{Rounds: len(s.samples.ratios.Rounds)}
}

// OpenShapes is the names of the timed shapes that the interim analyses so far leave open. The others
// have passed, with and without the samples that were marked as disturbed, and further rounds need
// not time them. While the weighted sum is open, every shape that it needs is. It is nil where all shapes are to be timed: before the first analysis, or where
// something other than a shape is open.
func OpenShapes(p *policy.Policy, e *Evidence) []string {
	return openShapes(p, e, newResamples(stats.DefaultResamples))
}

func openShapes(p *policy.Policy, e *Evidence, r *resamples) []string {
	j := &judgement{rule: ruleFor(p, e), evidence: e, resamples: r}
	gate := j.rule.Gates.Performance
	if gate == nil || e.Performance == nil || j.isNew() {
		return nil
	}
	interims, err := schedule(gate, e.Performance.Rounds)
	if err != nil {
		return nil
	}
	goals, _ := goalsOf(gate, e)
	goals, _ = e.splitGoals(goals)
	done := reached(interims, len(e.Performance.Rounds), e.Performance.Exhausted)
	if len(done) == 0 || len(goals) == 0 {
		return nil
	}
	open, stepOpen := map[string]bool{}, false
	for _, view := range []view{clean, whole} {
		c := analysis{gate: gate, evidence: e, goals: goals, view: view, resamples: j.resamples}.run(done)
		if c.fault != nil || c.overclaimed != nil {
			return nil
		}
		disturbed := 0
		for _, s := range c.shapes {
			disturbed += s.samples.marks.disturbed
			if s.status != Passed {
				open[s.shape.Name] = true
			}
		}
		stepOpen = stepOpen || gate.Weighted() != nil && (len(c.steps) == 0 || slices.ContainsFunc(c.steps, func(s *shapeComparison) bool { return s.status != Passed }))
		if disturbed == 0 {
			break // the other view is the same
		}
	}
	var names []string
	for _, g := range goals {
		if open[g.shape.Name] || stepOpen && e.timesFor(gate, g.shape) {
			names = append(names, g.shape.Name)
		}
	}
	return names
}
