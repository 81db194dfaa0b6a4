package gates

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// A conclusion is what the gates come to.
type conclusion struct {
	outcome Outcome
	reason  Reason
	found   facts.Fact
	steps   []facts.Advice
}

// conclude is the one place where gate results become an outcome.
func conclude(e *Evidence, results []GateResult) conclusion {
	switch {
	case e.Fault != "" && e.Setup:
		return conclusion{Error, ReasonSetup, facts.Fault{Setup: true, Text: e.Fault}, []facts.Advice{facts.FixBase{}}}
	case e.Fault != "":
		return conclusion{Error, ReasonRunner, facts.Fault{Text: e.Fault}, nil}
	}
	var missing *GateResult
	for i := range results {
		r := &results[i]
		if !r.Required {
			continue
		}
		switch r.Status {
		case Failed, Open:
			outcome := Defer
			if r.Reason == ReasonRunner || r.Reason == ReasonSetup {
				outcome = Error
			}
			return conclusion{outcome, r.Reason, r.Found, r.Steps}
		case Missing:
			missing = cmp.Or(missing, r)
		}
	}
	if missing != nil {
		steps := missing.Steps
		if steps == nil {
			steps = []facts.Advice{facts.Gather{Gate: string(missing.Gate), Why: missing.Found}}
		}
		return conclusion{Defer, ReasonInconclusive, facts.Lacking{Gate: string(missing.Gate), Why: missing.Found}, steps}
	}
	if i := slices.IndexFunc(results, func(r GateResult) bool { return r.Gate == GatePerformance && r.Status == Passed }); i >= 0 {
		return conclusion{outcome: Pass, found: results[i].Found}
	}
	runs := func(r GateResult) bool { return !r.Gate.Static() }
	return conclusion{outcome: Pass, found: facts.AllPassed{Static: e.Candidate != nil && !slices.ContainsFunc(results, runs)}}
}

// write puts the verdict into words: results, notes, summary and advice.
func (j *judgement) write(v *Verdict, c conclusion) {
	to := facts.Reader{Terminal: j.terminal}
	if p := j.evidence.Performance; p != nil {
		to.Rounds = len(p.Rounds)
	}
	writeResults(v.Gates, to)
	v.Notes = append(slices.Clone(j.evidence.Notes), facts.Sentences(j.notes)...)
	v.Existing = facts.Sentences(j.existing)
	v.Summary, v.ToPass = c.found.Sentence(), facts.Steps(c.steps, to)
	if rest := v.Remaining(); rest != "" {
		v.Summary = strings.TrimSuffix(v.Summary, ".") + rest
	}
}

func writeResults(results []GateResult, to facts.Reader) {
	for i := range results {
		r := &results[i]
		r.Text, r.Details, r.ToPass = r.Found.Sentence(), facts.Details(r.More), facts.Steps(r.Steps, to)
	}
}
