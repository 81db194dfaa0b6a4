package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// speed judges the times, and then the best state of the kernel that was merged.
func (j *judgement) speed() GateResult { return j.compareWithBest(j.performance()) }

// performance asks that the gain is proven and that no guarded shape has lost more than it may.
func (j *judgement) performance() GateResult {
	gate, p := j.rule.Gates.Performance, j.evidence.Performance
	if r, decided := j.sameCode(gate); decided {
		return r
	}
	goals, unknown := goalsOf(gate, j.evidence)
	goals, settled := j.evidence.splitGoals(goals)
	if r, decided := j.sameShapes(goals, settled); decided {
		return r
	}
	switch {
	case p == nil && j.isNew():
		return untimed(gate)
	case p == nil:
		return GateResult{Status: Missing, Reason: ReasonInconclusive, Found: facts.NothingTimed{}}
	}
	if r, bad := j.timedFailure(p.Rounds); bad {
		return j.suspectRace(r)
	}
	if len(unknown) > 0 {
		return GateResult{Status: Missing, Found: facts.NoSuchShapes{Names: unknown}}
	}
	if gate.Weighted() != nil && !j.isNew() {
		if j.evidence.Weights == nil {
			return GateResult{Status: Missing, Found: facts.NoWeights{}, Steps: []facts.Advice{facts.AddWeights{}}}
		}
		if lacking := j.evidence.lackWeights(); len(lacking) > 0 {
			return GateResult{Status: Missing, Found: facts.WeightsLack{Shapes: lacking}, Steps: []facts.Advice{facts.SupportShapes{Shapes: lacking}}}
		}
	}
	if len(goals) == 0 && (!j.isNew() || asksTime(gate)) {
		return GateResult{Status: Missing, Found: facts.NoShapes{}}
	}
	if j.isNew() {
		goals = timeGoals(goals)
	}
	interims, err := schedule(gate, p.Rounds)
	if err != nil {
		return GateResult{Status: Failed, Reason: ReasonRunner, Found: facts.Quote(err.Error())}
	}
	done := reached(interims, len(p.Rounds), p.Exhausted)
	if len(done) == 0 {
		first := policy.MinRounds
		if len(interims) > 0 {
			first = interims[0].rounds
		}
		return GateResult{
			Status: Open, Reason: ReasonInconclusive,
			Found: facts.FewRounds{Rounds: len(p.Rounds), First: first}, Steps: []facts.Advice{facts.MeasureMore{}},
		}
	}
	q := analysis{gate: gate, evidence: j.evidence, goals: goals, view: clean, resamples: j.resamples}
	c := q.run(done)
	j.comparisons = append(c.rows(), j.comparisons...)
	j.measuring = c.measuring(gate, p, interims)
	if c.fault == nil {
		j.weighted, j.weightedWarm = c.weightedSpeeds(j.evidence)
	}
	if j.isNew() {
		j.comparisons = withoutBaseline(j.comparisons)
		return c.timed(gate, j.evidence)
	}
	r := c.result(gate, j.evidence)
	if r.Status == Open {
		if why := c.tooNoisy(j.evidence, interims); why != nil {
			r.Found, r.Steps = why, append([]facts.Advice{facts.FreeMachine{}}, r.Steps...)
		}
	}
	if r.Status == Passed && j.measuring.Disturbed > 0 {
		r = j.withMarked(r, q, done)
	}
	return j.withUnseen(r, p.Rounds)
}

// run analyses the rounds at one interim analysis after the next, up to the first that decides.
// Later rounds do not change its decision.
func (q analysis) run(done []interim) *comparison {
	var c *comparison
	for i, l := range done {
		last := i == len(done)-1
		c = q.compare(l, c)
		c.interim = i + 1
		if q.view == clean {
			c.checkMarks()
		}
		decided := c.outcome() != Open || c.overclaimed != nil
		if c.fault == nil && (decided || last) {
			c.checkRunner(q.gate)
		}
		if c.fault != nil || decided {
			break
		}
	}
	return c
}

// withMarked keeps a pass only where it holds with the samples that were marked as disturbed as
// well. Marks remove whole blocks, and a candidate that causes marks must not win because its slow
// blocks are left out.
func (j *judgement) withMarked(passed GateResult, q analysis, done []interim) GateResult {
	q.view = whole
	all := q.run(done)
	r := all.result(q.gate, j.evidence)
	if r.Status == Passed {
		return passed
	}
	return GateResult{
		Status: Open, Reason: ReasonInconclusive,
		Found: facts.PassesWithoutDisturbed{Samples: j.measuring.Disturbed, With: r.Found}, Steps: []facts.Advice{facts.MeasureUndisturbed{}},
	}
}

// sameCodeAdvice is the advice for a change that gains nothing. Where there is no change yet, it is to begin one.
func (j *judgement) sameCodeAdvice() facts.Advice {
	base, head := j.evidence.Provenance.Base, j.evidence.Provenance.Head
	if base.SHA != "" && base.SHA == head.SHA && base.Variant == head.Variant && !head.Dirty {
		return facts.StartChange{Kernel: j.evidence.Kernel, Shape: firstShape(j.evidence)}
	}
	return facts.ChangeCode{}
}

// firstShape is the shape that the advice names.
func firstShape(e *Evidence) string {
	for _, s := range e.Shapes {
		if !s.Secret {
			return s.Listed()
		}
	}
	return "NAME"
}

// sameCode decides without measuring where both sides have the same machine code.
func (j *judgement) sameCode(gate *policy.PerformanceGate) (GateResult, bool) {
	if !j.evidence.SameCode {
		return GateResult{}, false
	}
	for _, goal := range gate.Goals() {
		if goal.Timed() {
			return GateResult{}, false
		}
		if asksGain(goal) {
			return GateResult{
				Status: Failed, Reason: ReasonTooSlow,
				Found: facts.NothingGained{Asked: goal.String()}, Steps: []facts.Advice{j.sameCodeAdvice()},
			}, true
		}
	}
	return GateResult{Status: Passed, Found: facts.NothingToMeasure{}}, true
}

// timedFailure finds launches that failed or gave wrong output while they were timed. A kernel that
// is right only when it is not timed is wrong. Where the test command of a harness decides, the
// timed outputs are unknown. An output that the baseline gets wrong on the same input as badly does
// not decide.
func (j *judgement) timedFailure(rounds []Round) (GateResult, bool) {
	gate, tested := j.rule.Gates.Correctness, j.evidence.tested()
	// The baseline of a new kernel is a copy of itself, which is always as wrong.
	reports := j.evidence.Baseline != nil && (gate == nil || gate.Existing != policy.ExistingDefers)
	var existing []string
	fail := func(found facts.Fact) (GateResult, bool) {
		return GateResult{Status: Failed, Reason: ReasonCorrectness, Found: found, Steps: []facts.Advice{facts.ComputeWhole{}}}, true
	}
	for i, r := range rounds {
		if r.Failure != nil {
			return fail(facts.FailedWhileTimed{Round: i + 1, Detail: r.Failure.Detail})
		}
		for _, s := range r.Series {
			if tested && s.Verified == 0 {
				continue
			}
			if s.Verified == 0 {
				return GateResult{Status: Failed, Reason: ReasonRunner, Found: facts.NotVerified{Round: i + 1}}, true
			}
			misses := (Case{Errors: j.evidence.Correctness.judgedErrors(s.Worst)}).misses(gate)
			switch {
			case len(misses) == 0:
			case reports && s.asBefore(gate):
				existing = append(existing, s.Shape)
			default:
				return fail(facts.WrongWhileTimed{Shape: j.evidence.labelOf(s.Shape), Round: i + 1, Problem: misses[0].fact})
			}
		}
	}
	if slices.Sort(existing); len(existing) > 0 {
		j.existing = append(j.existing, facts.ExistingTimed{Shapes: slices.Compact(existing)})
	}
	return GateResult{}, false
}

// A goalOf is what one shape must meet.
type goalOf struct {
	shape     Shape
	role      Role
	goal      *policy.Goal
	unbounded bool // the shape is timed for the reader or for the weighted sum only: its goal has no condition
}

// goalsOf gives every shape its role; a target is not guarded as well. The secret shape is guarded
// whatever shapes the policy lists, since no policy can name it.
func goalsOf(gate *policy.PerformanceGate, e *Evidence) (goals []goalOf, unknown []string) {
	names := e.shapeNames()
	pick := func(g *policy.Goal) []string {
		if g == nil || !g.PerShape() {
			return nil
		}
		unknown = append(unknown, g.Shapes.Unknown(names)...)
		picked := namesIn(g.Shapes.Pick(names), g.Context)
		unknown = append(unknown, e.notTimed(picked)...)
		return picked
	}
	targets, guards := pick(gate.Target), pick(gate.Guard)
	if gate.Weighted() != nil {
		unknown = append(unknown, e.notTimed(e.allWeighed(gate))...)
	}
	for _, s := range e.Shapes {
		g, weighed := goalOf{shape: s}, e.timesFor(gate, s)
		switch {
		case !s.Secret && slices.Contains(targets, s.Name):
			g.role, g.goal = RoleTarget, gate.Target.Alone()
		case !s.Secret && slices.Contains(guards, s.Name):
			g.role, g.goal = RoleGuard, gate.Guard.Alone()
		case s.Secret && gate.TimesSecretShape():
			g.role, g.goal = RoleGuard, gate.Guard.ForSecret(s.Name)
		case weighed:
			g.forSum()
		default:
			continue
		}
		// Equal code is as fast as asked, and only its time is unknown.
		if weighed && slices.Contains(e.SameShapes, s.Name) && !asksGain(g.goal) && !g.goal.Timed() {
			g.forSum()
		}
		goals = append(goals, g)
	}
	return goals, unknown
}

// forSum makes it a shape whose time is needed, and of which nothing is asked.
func (g *goalOf) forSum() { g.role, g.goal, g.unbounded = RoleInfo, &policy.Goal{}, true }

// TimedShapes is the shapes that a rule wants timed, in the order of the manifest, the secret shape
// last.
func TimedShapes(rule *policy.Rule, e *Evidence) []string {
	var names []string
	if rule.Gates.Performance != nil {
		goals, _ := goalsOf(rule.Gates.Performance, e)
		goals, _ = e.splitGoals(goals)
		for _, g := range goals {
			names = append(names, g.shape.Name)
		}
	}
	return names
}

// measuring says how the figures were measured.
func (c *comparison) measuring(gate *policy.PerformanceGate, p *Performance, interims []interim) *Measuring {
	m := &Measuring{
		Rounds: c.rounds, MaxRounds: interims[len(interims)-1].rounds, Interim: c.interim, Interims: len(interims), Attempts: 1,
		Confidence: confidenceAt(c.alpha), Policy: float64(gate.Confidence), Seconds: round(p.Seconds),
	}
	if c.rounds > 0 {
		m.Attempts = max(1, p.Rounds[c.rounds-1].Attempt)
	}
	if n := p.CodeNumber(); n > 1 {
		m.CodeNumber, m.ErrorRate = n, round(codeAlpha(1-float64(gate.Confidence), n))
	}
	for _, s := range c.shapes {
		m.Pairs += s.samples.pairs
		if n := len(s.samples.strata.kinds); n > 1 {
			m.Inputs = max(m.Inputs, n)
		}
		m.Disturbed += s.samples.marks.disturbed
	}
	return m
}

// fewResamples is enough where the last digit of a p-value does not decide.
const fewResamples = 2_000

// power is the statistical power of Detectable and RoundsNeeded.
const power = 0.8

// seed is the only randomness of a verdict, and it never changes.
const seed = 0x6b65726e656c
