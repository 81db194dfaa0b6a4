package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// result is the comparison as a result of the gate.
func (c *comparison) result(gate *policy.PerformanceGate, e *Evidence) GateResult {
	if c.fault != nil {
		return unfit(c.fault)
	}
	outcome := c.outcome()
	if outcome != Open || c.overclaimed != nil {
		if why := c.suspicion(gate, e, outcome); why != nil {
			return suspicious(why)
		}
	}
	r := GateResult{Status: Passed, Found: facts.Speeds{Result: facts.Proven, Shapes: c.speeds(Passed)}}
	switch outcome {
	case Failed:
		r = c.missed(e)
	case Open:
		r = c.undecided(e.Performance)
	}
	for _, s := range c.judged() {
		r.More = append(r.More, s.details(s.alpha)...)
	}
	return r
}

func unfit(why facts.Fact) GateResult {
	r := GateResult{Status: Failed, Reason: ReasonRunner, Found: facts.Unfit{Why: why}}
	if _, coarse := why.(facts.CoarseClock); !coarse { // which says itself what to do
		r.Steps = []facts.Advice{facts.FreeMachine{}}
	}
	return r
}

func (c *comparison) missed(e *Evidence) GateResult {
	r := GateResult{Status: Failed}
	for _, s := range c.judged() {
		if s.status == Failed && s.role == RoleGuard {
			r.Steps = append(r.Steps, s.regainSteps(e)...)
		}
	}
	if lost := c.speedsOf(Failed, RoleGuard); lost != nil {
		r.Reason, r.Found = ReasonRegression, facts.Speeds{Result: facts.Slower, Shapes: lost}
		return r
	}
	r.Reason, r.Found = ReasonTooSlow, facts.Speeds{Result: facts.TooSlow, Shapes: c.speedsOf(Failed, RoleTarget)}
	for _, s := range c.judged() {
		if s.status != Failed {
			continue
		}
		if step := s.advice(c.alpha); step != nil {
			r.Steps = append(r.Steps, step)
		} else if step := s.timeToReach(); step != nil {
			r.Steps = append(r.Steps, step)
		}
	}
	return r
}

// timeToReach is the advice with the time that a shape must come down to, or nil where its speedup is not what failed.
func (s *shapeComparison) timeToReach() facts.Advice {
	for _, t := range s.tests {
		if most := s.baselineTime() / t.threshold; t.dist == s.ratio && t.dist.Estimate < t.threshold && most > 0 {
			if s.sum != nil {
				return facts.BringStep{Micros: most, Warm: s.shape.Context == policy.Warm}
			}
			return facts.BringTime{Shape: s.shape.Label(), Micros: most}
		}
	}
	return nil
}

// baselineTime is the baseline's time of a launch, or of all launches of a step.
func (s *shapeComparison) baselineTime() float64 {
	if s.sum != nil {
		return s.sum.baseline
	}
	return s.samples.time(s.samples.baselineTimes)
}

// advice is what to do about a shape that does not pass although its median meets the goal; else nil.
func (s *shapeComparison) advice(alpha float64) facts.Advice {
	switch {
	case s.slowTail(alpha) != nil:
		return facts.FixSlowLaunches{Shape: s.shape.Label()}
	case s.slowKind(alpha) != nil:
		return s.kindTimesToReach()
	case s.unconfirmed != nil || s.refuted != nil:
		return facts.GainAloneToo{Shape: s.shape.Label()}
	}
	return nil
}

func (c *comparison) undecided(p *Performance) GateResult {
	found := facts.Speeds{Result: facts.Undecided, Shapes: c.speeds(Open), Rounds: c.rounds, Exhausted: p.Exhausted}
	if n := p.CodeNumber(); c.passesAsFirst(n) {
		found.CodeNumber = n
	}
	r := GateResult{Status: Open, Reason: ReasonInconclusive, Found: found}
	for _, s := range c.judged() {
		if s.status != Open {
			continue
		}
		if s.tooFew {
			r.Steps = append(r.Steps, facts.MeasureShape{Shape: s.shape.Label()})
			continue
		}
		for _, t := range s.tests {
			if !c.proves(t) {
				c.prove(&r, s, t)
			}
		}
		if step := s.advice(c.alpha); step != nil {
			r.Steps = append(r.Steps, facts.OrMeasureMore{Advice: step})
		}
	}
	return r
}

// prove adds what it takes to prove one condition of a goal.
func (c *comparison) prove(r *GateResult, s *shapeComparison, t test) {
	label := s.shape.Label()
	if t.meet <= c.alpha {
		r.Steps = append(r.Steps, facts.AddAgreeingRounds{Shape: label, Agree: t.agree, Rounds: t.rounds, CodeNumber: c.number})
		return
	}
	detail := facts.Detectable{Shape: label, Rounds: c.rounds, Share: t.dist.Detectable(c.alpha, power)}
	if n := t.dist.RoundsNeeded(t.threshold, c.alpha, power); n < affordableRounds {
		detail.Needed = n
		r.Steps = append(r.Steps, facts.AddRounds{Shape: label, Rounds: max(n-c.rounds, 1)})
	} else {
		r.Steps = append(r.Steps, facts.GainMore{Shape: label})
	}
	r.More = append(r.More, detail)
}

// affordableRounds is more rounds than anybody measures.
const affordableRounds = 10_000

// speeds is the shapes of a status, the targets or else the guards.
func (c *comparison) speeds(status Status) []facts.ShapeSpeed {
	if targets := c.speedsOf(status, RoleTarget); targets != nil {
		return targets
	}
	return c.speedsOf(status, RoleGuard)
}

func (c *comparison) speedsOf(status Status, role Role) []facts.ShapeSpeed {
	var all []facts.ShapeSpeed
	for _, s := range c.judged() {
		if s.status == status && s.role == role {
			all = append(all, s.speed(s.alpha))
		}
	}
	return all
}

func (s *shapeComparison) speed(alpha float64) facts.ShapeSpeed {
	speed := facts.ShapeSpeed{Shape: s.shape.Label(), Remarks: s.remarks(), But: s.buts(alpha)}
	if s.ratio == nil || s.tooFew && s.status == Open {
		speed.TooFew = true
		return speed
	}
	speed.Speedup = speedupOf(s.ratio, alpha)
	for _, t := range s.tests {
		speed.Asked = append(speed.Asked, facts.Condition{Metric: t.metric, Asked: t.asked})
	}
	if s.status == Failed && s.samples.strata.differs() {
		speed.ByInputs = s.samples.strata.speedups()
	}
	return speed
}

// details is what a reader should know about a shape in addition to its speedup.
func (s *shapeComparison) details(alpha float64) []facts.Fact {
	var all []facts.Fact
	if s.samples.strata.differs() {
		all = append(all, facts.KindsApart{Shape: s.shape.Label(), Kinds: s.samples.strata.speedups()})
	}
	for _, f := range append(s.remarks(), s.buts(alpha)...) {
		all = append(all, facts.OfShape{Shape: s.shape.Label(), Fact: f})
	}
	return all
}

// remarks is how the speedup of a shape is to be read.
func (s *shapeComparison) remarks() []facts.Fact { return known(s.waits, s.capped(), s.settledAfter()) }

// buts is what keeps a shape from passing although its median meets the goal.
func (s *shapeComparison) buts(alpha float64) []facts.Fact {
	return known(s.slowTail(alpha), s.slowKind(alpha), s.unconfirmed, s.refuted)
}

func known(all ...facts.Fact) []facts.Fact {
	return slices.DeleteFunc(all, func(f facts.Fact) bool { return f == nil })
}
