package gates

import (
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A Need is the evidence that is missing for a verdict.
type Need struct {
	Gate   Gate // whose evidence is missing, or StepExplain; empty when the verdict can fall
	Rounds int  // performance: measure until there are this many rounds in all
}

// Next says which evidence a runner must gather next. It runs the same judgement as Judge, so a run
// stops at the first required gate that fails, and measures no more rounds than the verdict needs.
func Next(p *policy.Policy, e *Evidence) Need {
	return next(p, e, newResamples(stats.DefaultResamples))
}

func next(p *policy.Policy, e *Evidence, r *resamples) Need {
	j := &judgement{rule: ruleFor(p, e), evidence: e, resamples: r}
	if e.Fault != "" || e.Removed {
		return Need{}
	}
	if e.Candidate == nil {
		return Need{Gate: GateBuild}
	}
	j.run()
	if need := j.need(); need.Gate != "" || !lacksExplanation(j.rule, e) {
		return need
	}
	return Need{Gate: StepExplain}
}

// need is the evidence that is missing after the gates have run.
func (j *judgement) need() Need {
	for _, r := range j.results {
		if need := j.needOf(r); need.Gate != "" {
			return need
		}
		// Evidence that is there and does not pass will not pass when it is gathered again.
		if r.Required && r.Status != Passed && r.Status != NotRun && r.Status != Informs {
			return Need{}
		}
	}
	return Need{}
}

// needOf is the evidence that one gate lacks.
func (j *judgement) needOf(r GateResult) Need {
	g := declaration(r.Gate)
	if g.needs != nil {
		return g.needs(j, r)
	}
	if j.has(r.Gate) || r.Status != Missing && r.Status != Informs {
		return Need{}
	}
	return Need{Gate: r.Gate}
}

// has reports whether a gate's evidence was gathered.
func (j *judgement) has(name Gate) bool {
	g := declaration(name)
	if g.gathered == nil {
		return true
	}
	_, ok := g.gathered(j.evidence)
	return ok
}

// needsRounds asks for more rounds while they may decide and the noise lets them. A new kernel is timed even where the policy asks for no time.
func (j *judgement) needsRounds(r GateResult) Need {
	if _, noisy := r.Found.(facts.TooNoisy); noisy || r.Reason != ReasonInconclusive && !j.wantsTime(r) {
		return Need{}
	}
	return j.moreRounds()
}

func (j *judgement) moreRounds() Need {
	gate, p := j.rule.Gates.Performance, j.evidence.Performance
	have, rounds := 0, []Round(nil)
	if p != nil {
		have, rounds = len(p.Rounds), p.Rounds
		if p.Exhausted {
			return Need{}
		}
	}
	interims, err := schedule(gate, rounds)
	if err != nil {
		return Need{}
	}
	for _, l := range interims {
		if l.rounds > have {
			return Need{Gate: GatePerformance, Rounds: l.rounds}
		}
	}
	return Need{}
}
