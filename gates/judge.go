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
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	if j.here && e.Performance != nil {
		for _, r := range j.results {
			atTerminal(r.ToPass, len(e.Performance.Rounds))
		}
	}
	v.Gates, v.Resources, v.Correctness, v.Comparisons = j.results, j.resources, j.cases, j.comparisons
	v.Profile, v.Measuring, v.Findings = j.metrics, j.measuring, j.findings
	v.Sanitizers, v.Existing, v.Best = j.sanitizers, j.existing, j.best
	v.Notes = append(v.Notes, j.notes...)
	for _, b := range []*Build{e.Baseline, e.Candidate} {
		if b != nil {
			v.Builds = append(v.Builds, *b)
		}
	}
	v.conclude(e)
	v.ToPass = append(v.ToPass, j.fittingRules(p, v)...)
	return v
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
	notes       []string
	existing    []string // findings that decide nothing, for the baseline has them as well
}

// run takes the evidence through the gates in order, up to the first required
// one that does not pass.
func (j *judgement) run() {
	g := j.rule.Gates
	stopped := false
	step := func(name Gate, enforcement policy.Enforcement, judge func() GateResult) {
		r := GateResult{Status: NotRun, Text: "an earlier gate did not pass"}
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

// conclude is the one place where gate results become an outcome.
func (v *Verdict) conclude(e *Evidence) {
	switch {
	case e.Fault != "" && e.Setup:
		v.Outcome, v.Reason = Error, ReasonSetup
		v.Summary = "The setup is at fault, not the change: " + e.Fault
		v.Findings = append(v.Findings, e.FaultAt...)
		v.ToPass = []string{mendSetup}
		return
	case e.Fault != "":
		v.Outcome, v.Reason = Error, ReasonRunner
		v.Summary = "The runner could not do its work: " + e.Fault
		return
	}
	var missing *GateResult
	for i := range v.Gates {
		r := &v.Gates[i]
		if !r.Required {
			continue
		}
		switch r.Status {
		case Failed, Open:
			v.Outcome, v.Reason, v.Summary, v.ToPass = Defer, r.Reason, r.Text, r.ToPass
			if r.Reason == ReasonRunner || r.Reason == ReasonSetup {
				v.Outcome = Error
			}
			return
		case Missing:
			missing = cmp.Or(missing, r)
		}
	}
	if missing != nil {
		v.Outcome, v.Reason = Defer, ReasonInconclusive
		v.Summary = fmt.Sprintf("The evidence does not have what the %s gate asks: %s", missing.Gate, missing.Text)
		v.ToPass = missing.ToPass
		if v.ToPass == nil {
			v.ToPass = []string{fmt.Sprintf("have a runner gather what the %s gate lacks (%s), or ask for less in the policy", missing.Gate, missing.Text)}
		}
		return
	}
	v.Outcome, v.Summary = Pass, "Every required gate passed."
	if e.Candidate != nil && !slices.ContainsFunc(v.Gates, func(r GateResult) bool { return r.Gate != GateBuild && r.Gate != GatePTXAS }) {
		v.Summary = "It compiles, within its budgets. This is static: nothing was run."
	}
	if i := slices.IndexFunc(v.Gates, func(r GateResult) bool { return r.Gate == GatePerformance && r.Status == Passed }); i >= 0 {
		v.Summary = v.Gates[i].Text
	}
	if rest := v.Remaining(); rest != "" {
		v.Summary = strings.TrimSuffix(v.Summary, ".") + rest
	}
}
