package gates

import (
	"cmp"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// correctness asks that every case of the policy was run and every output was
// within bounds.
func (j *judgement) correctness() GateResult {
	gate, c := j.rule.Gates.Correctness, j.evidence.Correctness
	switch {
	case c == nil:
		return GateResult{Status: Missing, Found: facts.NothingCompared{}}
	case c.Test != nil:
		return j.tested(c.Test)
	}
	var wrong []facts.WrongCase
	varies := false
	passed := facts.CasesPassed{Cases: len(c.Cases), Deterministic: true, BitIdentical: true}
	for _, k := range c.judged() {
		w, isWrong := newWrongCase(gate, k)
		w.Existed = w.Existed && j.evidence.Baseline != nil
		j.addCase(k, w, isWrong)
		if isWrong {
			wrong = append(wrong, w)
		}
		if k.Errors != nil {
			passed.MaxAbs, passed.Norm = max(passed.MaxAbs, k.Errors.MaxAbs), max(passed.Norm, k.Errors.Norm)
		}
		passed.BitIdentical = passed.BitIdentical && k.BitParity != nil && *k.BitParity
		passed.Deterministic = passed.Deterministic && k.Deterministic != nil && *k.Deterministic
		varies = varies || k.Deterministic != nil && !*k.Deterministic
	}
	if decides(gate, wrong, len(c.Cases)) {
		r := j.wrong(wrong, len(c.Cases))
		if varies {
			return j.suspectRace(r)
		}
		return r
	}
	if i := slices.IndexFunc(c.Cases, func(k Case) bool { return k.StateKept }); i >= 0 {
		return GateResult{
			Status: Failed, Reason: ReasonSuspicious,
			Found: facts.StateKept{Input: c.Cases[i].Input}, Steps: []facts.Advice{facts.KeepNothing{}},
		}
	}
	if found := c.unprotected(gate); found != nil {
		return GateResult{Status: Failed, Reason: ReasonSetup, Found: found, Steps: []facts.Advice{facts.RaiseNoise{}}}
	}
	if missing := missingCases(gate, j.evidence); len(missing) > 0 {
		return GateResult{Status: Missing, Found: facts.CasesNotRun{Missing: missing}, More: missing}
	}
	if len(j.losses()) == 0 {
		j.notePrecision(c.Cases)
	}
	if len(wrong) > 0 {
		return j.wrongBefore(wrong, len(c.Cases))
	}
	return GateResult{Status: Passed, Found: passed}
}

// tested reports whether a test command has decided in place of cases.
func (e *Evidence) tested() bool { return e.Correctness != nil && e.Correctness.Test != nil }

// replay is the command that repeats one case and shows what is wrong with it.
func (e *Evidence) replay(i Input) string {
	return cmp.Or(e.Provenance.Command, "kernelgate check "+e.Kernel) + " " + i.Flags()
}

// Wrong is the cases that fail the gate, by their number in the evidence, from 1.
func (e *Evidence) Wrong(gate *policy.CorrectnessGate) []int {
	var numbers []int
	if e.Correctness == nil || gate == nil {
		return nil
	}
	for i, k := range e.Correctness.judged() {
		if k.Problem(gate) != "" {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// Problem is the first thing that is wrong with the case under a gate, the most important first, or
// empty. Without a gate no element may be beyond the tolerance.
func (k Case) Problem(gate *policy.CorrectnessGate) string {
	if all := k.misses(gate); len(all) > 0 {
		return all[0].fact.Sentence()
	}
	return ""
}

// missingCases is the cases that the policy asks for and the evidence does not have. An author who
// could choose the cases could leave out those that fail.
func missingCases(gate *policy.CorrectnessGate, e *Evidence) []facts.Fact {
	names := e.shapeNames()
	var missing []facts.Fact
	for _, name := range gate.Shapes.Unknown(names) {
		missing = append(missing, facts.UnknownShape{Name: name})
	}
	type key struct {
		shape, distribution string
		seed                uint64
	}
	have := map[key]*Case{}
	secret := 0
	for i := range e.Correctness.Cases {
		k := &e.Correctness.Cases[i]
		if k.Secret {
			secret++
			continue
		}
		have[key{k.Shape, k.Distribution, k.Seed}] = k
	}
	for _, shape := range gate.Shapes.Pick(names) {
		missing = append(missing, missingRecorded(gate, e, shape)...)
		for _, d := range distribution.On(gate.Distributions, e.Recorded, shape) {
			for _, seed := range gate.SeedsOf(d) {
				k := have[key{shape, string(d), uint64(seed)}]
				switch {
				case k == nil:
					missing = append(missing, facts.CaseNotRun{Input: Input{Shape: shape, Seed: uint64(seed), Distribution: string(d)}})
				case k.Failure != nil: // there is nothing to compare, and that is judged
				case gate.Determinism && k.Deterministic == nil:
					missing = append(missing, facts.CaseNotRun{Input: k.Input, SecondLaunch: true})
				case gate.BitParity && k.BitParity == nil:
					missing = append(missing, facts.CaseNotRun{Input: k.Input, BaselineOutput: true})
				}
			}
		}
	}
	if lacking := int(gate.SecretCases) - secret; lacking > 0 {
		missing = append(missing, facts.SecretCasesLacking{Cases: lacking})
	}
	return missing
}

// addCase adds a case to the row of its shape and distribution. A problem that the change has caused
// is shown before an existing one.
func (j *judgement) addCase(k Case, w facts.WrongCase, wrong bool) {
	i := slices.IndexFunc(j.cases, func(r CaseRow) bool {
		return r.Shape == k.Shape && r.Dims == k.Dims && r.Distribution == k.Distribution && r.Secret == k.Secret
	})
	if i < 0 {
		j.cases = append(j.cases, CaseRow{Shape: k.Shape, Dims: k.Dims, Distribution: k.Distribution, Secret: k.Secret})
		i = len(j.cases) - 1
	}
	row := &j.cases[i]
	onlyExisting := row.Existing == row.Total-row.Passed
	row.Total++
	switch {
	case !wrong:
		row.Passed++
	case row.Problem == "" || onlyExisting && !w.Existed:
		row.Problem = facts.OfSeed{Seed: k.Seed, Problem: w.Problem}.Sentence()
	}
	if w.Existed {
		row.Existing++
	}
	row.Deterministic = both(row.Deterministic, k.Deterministic, row.Total == 1)
	row.BitParity = both(row.BitParity, k.BitParity, row.Total == 1)
	if e := k.Errors; e != nil {
		row.MaxAbs = max(row.MaxAbs, e.MaxAbs)
		row.MeanAbs = max(row.MeanAbs, e.MeanAbs)
		row.Norm = max(row.Norm, e.Norm)
		row.BadShare = max(row.BadShare, e.badShare())
	}
	if e := k.EndToEnd; e != nil && (row.EndToEnd == nil || *row.EndToEnd < e.MaxAbs) {
		row.EndToEnd = &e.MaxAbs
	}
}

// both combines a row with one more case; unknown stays unknown.
func both(row, next *bool, first bool) *bool {
	switch {
	case first:
		return next
	case row == nil || next == nil:
		return nil
	}
	return new(*row && *next)
}

// notePrecision adds a note where the candidate is right, but less precise than the
// baseline: a reader should see that precision was traded for speed.
func (j *judgement) notePrecision(cases []Case) {
	for _, k := range cases {
		if k.Errors == nil || k.Baseline == nil || k.Baseline.Norm == 0 {
			continue
		}
		if factor := k.Errors.Norm / k.Baseline.Norm; factor > 2 && k.Errors.Norm > 1e-4 {
			j.note(facts.LessPrecise{Input: k.Input, Norm: k.Errors.Norm, Baseline: k.Baseline.Norm})
			return
		}
	}
}
