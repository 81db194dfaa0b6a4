// Package gates judges evidence: pure functions from a policy and the evidence of a
// runner to a verdict. They use no clock, no disk, no network and no randomness but a
// fixed seed: the same evidence under the same policy gives the same verdict, byte
// for byte, years later.
//
// The gates run in the order of their list (inOrder), and a required gate that fails ends
// the run: a wrong kernel is never timed. [Next] asks the same functions which evidence is
// still missing, so that gathering and judging cannot disagree.
//
// Read gate.go and judge.go first, then the file of each gate, then conclude.go. A gate puts what it
// found into types of gates/facts, which write all sentences. Speed takes most of the
// code: performance.go decides what to compare, samples.go reads the rounds, compare.go
// tests them, and speeds.go says what the tests come to.
package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Judge turns evidence into a verdict. The policy's file name is quoted in it.
func Judge(p *policy.Policy, file string, e *Evidence) *Verdict {
	return judge(p, file, e, newResamples(stats.DefaultResamples))
}

// JudgeForTerminal is Judge for a reader at a terminal, who measures again with a flag and not by a comment on a pull request.
func JudgeForTerminal(p *policy.Policy, file string, e *Evidence) *Verdict {
	return judgeAs(&judgement{rule: ruleFor(p, e), evidence: e, resamples: newResamples(stats.DefaultResamples), terminal: true}, p, file)
}

func judge(p *policy.Policy, file string, e *Evidence, r *resamples) *Verdict {
	return judgeAs(&judgement{rule: ruleFor(p, e), evidence: e, resamples: r}, p, file)
}

func judgeAs(j *judgement, p *policy.Policy, file string) *Verdict {
	e := j.evidence
	j.noteChoices()
	j.run()
	concluded := conclude(e, j.results)
	concluded.steps = append(slices.Clip(concluded.steps), j.fittingRules(p, concluded.reason)...)
	if e.Fault != "" && e.Setup {
		j.findings = append(j.findings, e.FaultAt...)
	}
	v := &Verdict{
		Schema: VerdictSchema, Kernel: e.Kernel, Outcome: concluded.outcome, Reason: concluded.reason, Rule: j.rule.Name, Policy: file,
		Provenance: e.Provenance, Device: e.Device, Rivals: e.Rivals, MachineCode: e.MachineCode,
		Gates: j.results, Resources: j.resources, Correctness: j.cases, Sanitizers: j.sanitizers, Comparisons: j.comparisons,
		Weighted: j.weighted, WeightedWarm: j.weightedWarm, Best: j.best, Energy: j.energies, Profile: j.metrics, Measuring: j.measuring, Findings: j.findings,
	}
	v.Elsewhere = elsewhere(p.Devices, e.Provenance.Label)
	switch only := j.rule.Gates.OnlyExplain; {
	case e.Explained != nil && only != nil:
		v.Why = explain(e, nil, only.Shapes.Names)
		if concluded.outcome == Pass && len(v.Why) > 0 {
			concluded.found = facts.Explained{Explanation: v.Why[0].Explanation}
		}
	case e.Explained != nil:
		v.Why = Explain(e, j.comparisons)
	}
	switch label := e.Provenance.Label; {
	case !j.rule.Enforce.Blocks():
		v.Enforce = j.rule.Enforce
	case p.Devices.Informs(label):
		v.Enforce = policy.EnforceInform
	}
	for _, b := range []*Build{e.Baseline, e.Candidate} {
		if b != nil {
			v.Builds = append(v.Builds, *b)
		}
	}
	if len(v.Comparisons) == 0 && v.Outcome == Defer {
		v.Unjudged = UnjudgedTimes(e)
	}
	j.write(v, concluded)
	v.Trial = j.trial(p)
	return v
}

// trial judges the evidence by the rule that is tried on the change; nil where there is none.
func (j *judgement) trial(p *policy.Policy) *Trial {
	rule := p.TrialFor(changeOf(j.evidence))
	if rule == nil || j.evidence.Fault != "" || j.evidence.Removed {
		return nil // a fault says nothing about the rule
	}
	own := &judgement{rule: rule, evidence: j.evidence, resamples: j.resamples, terminal: j.terminal}
	own.run()
	c := conclude(own.evidence, own.results)
	t := &Trial{Rule: rule.Name, Enforce: rule.Enforce, Outcome: c.outcome, Reason: c.reason, Summary: c.found.Sentence()}
	if c.outcome == Defer {
		t.Lacks = own.need().Gate
	}
	return t
}

func (j *judgement) note(f facts.Fact) { j.notes = append(j.notes, f) }

func ruleFor(p *policy.Policy, e *Evidence) *policy.Rule { return p.RuleFor(changeOf(e)) }

// changeOf is the change that the evidence is about, as rules ask about it.
func changeOf(e *Evidence) policy.Change {
	change := e.Change
	change.Kernel = e.Kernel
	return change
}

// A judgement is one pass of evidence through the gates of one rule.
type judgement struct {
	rule      *policy.Rule
	evidence  *Evidence
	resamples *resamples
	terminal  bool // the reader is at a terminal

	results      []GateResult
	resources    []ResourceRow
	cases        []CaseRow
	comparisons  []Comparison
	sanitizers   []SanitizerRow
	energies     []EnergyRow
	metrics      []MetricRow
	best         []AgainstBest
	weighted     *WeightedSpeed
	weightedWarm *WeightedSpeed
	measuring    *Measuring
	findings     []Diagnostic
	notes        []facts.Fact
	existing     []facts.Fact // findings that decide nothing, for the baseline has them as well
}

// run takes the evidence through the gates in order, up to the first required
// one that does not pass.
func (j *judgement) run() {
	stopped := false
	for _, g := range inOrder {
		decides, asked := j.rule.Gates.Asks(string(g.name))
		if !asked || g.known != nil && !g.known(j.evidence) {
			continue
		}
		r := GateResult{Status: NotRun, Found: facts.NotReached{}}
		if !stopped {
			r = j.unlessSame(g.name, func() GateResult { return g.judge(j) })
		}
		r.Gate, r.Required = g.name, decides
		if !r.Required && (r.Status == Failed || r.Status == Open || r.Status == Missing) {
			r.Status = Informs
		}
		stopped = stopped || r.Status == Failed || r.Status == Open || r.Status == Missing
		j.results = append(j.results, r)
	}
}

// unlessSame judges a gate, unless the candidate's machine code equals the baseline's: then the gate
// was decided when the baseline was merged. Only the performance gate still asks what such a change
// gains.
func (j *judgement) unlessSame(gate Gate, judge func() GateResult) GateResult {
	if !j.evidence.SameCode || gate == GateBuild || gate == GatePerformance {
		return judge()
	}
	if gate == GateProfile && j.evidence.Performance != nil {
		return judge() // a bound on a time was asked, so the kernel was run
	}
	if j.has(gate) {
		judge() // the rows are shown
	}
	return GateResult{Status: Passed, Found: facts.MergedCode{}}
}
