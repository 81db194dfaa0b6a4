// Package gates judges evidence: pure functions from a policy and what a runner
// saw to a verdict. No clock, no disk, no network and no randomness but a fixed
// seed: the same evidence under the same policy gives the same verdict, byte
// for byte, years later.
//
// The gates stand in the order of policies.Gates, and a required one that fails
// ends the run: green before fast. Next asks the same functions what evidence
// is still missing, so that gathering and judging cannot disagree.
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

// JudgeHere is Judge for somebody at a terminal, who measures again with a flag and not by a comment on a pull request.
func JudgeHere(p *policy.Policy, file string, e *Evidence) *Verdict {
	return judgeAs(&judgement{rule: ruleFor(p, e), evidence: e, resamples: newResamples(stats.DefaultResamples), here: true}, p, file)
}

func judge(p *policy.Policy, file string, e *Evidence, r *resamples) *Verdict {
	return judgeAs(&judgement{rule: ruleFor(p, e), evidence: e, resamples: r}, p, file)
}

func judgeAs(j *judgement, p *policy.Policy, file string) *Verdict {
	e, rule := j.evidence, j.rule
	v := &Verdict{
		Schema: VerdictSchema, Kernel: e.Kernel, Rule: rule.Name, Policy: file,
		Provenance: e.Provenance, Device: e.Device, Notes: slices.Clone(e.Notes), Rivals: e.Rivals, MachineCode: e.MachineCode,
	}
	j.recordChosen()
	j.run()
	j.write()
	v.Gates, v.Resources, v.Correctness, v.Comparisons = j.results, j.resources, j.cases, j.comparisons
	v.Profile, v.Measuring, v.Findings = j.metrics, j.measuring, j.findings
	v.Sanitizers, v.Existing, v.Best = j.sanitizers, facts.Sentences(j.existing), j.best
	v.Notes = append(v.Notes, facts.Sentences(j.notes)...)
	for _, b := range []*Build{e.Baseline, e.Candidate} {
		if b != nil {
			v.Builds = append(v.Builds, *b)
		}
	}
	concluded := conclude(e, j.results)
	if e.Fault != "" && e.Setup {
		v.Findings = append(v.Findings, e.FaultAt...)
	}
	concluded.steps = append(slices.Clip(concluded.steps), j.fittingRules(p, concluded.reason)...)
	v.conclude(concluded, j.reader())
	return v
}

func (j *judgement) note(f facts.Fact) { j.notes = append(j.notes, f) }

// reader is who reads the advice.
func (j *judgement) reader() facts.Reader {
	to := facts.Reader{Terminal: j.here}
	if j.evidence.Performance != nil {
		to.Rounds = len(j.evidence.Performance.Rounds)
	}
	return to
}

func ruleFor(p *policy.Policy, e *Evidence) *policy.Rule {
	change := e.Change
	change.Kernel = e.Kernel
	return p.RuleFor(change)
}

// A judgement is one pass of evidence through the gates of one rule.
type judgement struct {
	rule      *policy.Rule
	evidence  *Evidence
	resamples *resamples
	here      bool // the advice is for somebody at a terminal

	results     []GateResult
	resources   []ResourceRow
	cases       []CaseRow
	comparisons []Comparison
	sanitizers  []SanitizerRow
	metrics     []MetricRow
	best        []AgainstBest
	measuring   *Measuring
	findings    []Diagnostic
	notes       []facts.Fact
	existing    []facts.Fact // findings that decide nothing, for the baseline has them as well
}

// run takes the evidence through the gates in order, up to the first required
// one that does not pass.
func (j *judgement) run() {
	g := j.rule.Gates
	stopped := false
	step := func(name Gate, enforcement policy.Enforcement, judge func() GateResult) {
		r := GateResult{Status: NotRun, Found: facts.NotReached{}}
		if !stopped {
			r = j.unlessSame(name, judge)
		}
		r.Gate, r.Required = name, enforcement.Decides()
		if !r.Required && (r.Status == Failed || r.Status == Open || r.Status == Missing) {
			r.Status = Informs
		}
		stopped = stopped || r.Status == Failed || r.Status == Open || r.Status == Missing
		j.results = append(j.results, r)
	}
	step(GateBuild, g.Build.Enforcement, j.build)
	if g.PTXAS != nil {
		step(GatePTXAS, g.PTXAS.Enforcement, j.ptxas)
	}
	if g.Correctness != nil {
		step(GateCorrectness, g.Correctness.Enforcement, j.correctness)
	}
	if g.Sanitize != nil {
		step(GateSanitize, g.Sanitize.Enforcement, j.sanitize)
	}
	if g.Performance != nil {
		step(GatePerformance, g.Performance.Enforcement, func() GateResult { return j.holdToBest(j.performance()) })
	}
	if g.Profile != nil {
		step(GateProfile, g.Profile.Enforcement, j.profile)
	}
}
