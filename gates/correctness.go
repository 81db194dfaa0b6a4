package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// correctness asks that every case of the policy was run and every output was
// within bounds.
func (j *judgement) correctness() GateResult {
	gate, c := j.rule.Gates.Correctness, j.evidence.Correctness
	switch {
	case c == nil:
		return GateResult{Status: Missing, Text: "no output was compared"}
	case c.Test != nil:
		return j.tested(c.Test)
	}
	var wrong []wrongCase
	parity, deterministic, varies := true, true, false
	worst := Errors{}
	for _, k := range c.judged() {
		w := newWrongCase(gate, k)
		w.existed = w.existed && j.evidence.Baseline != nil
		j.addCase(k, w)
		if w.problem != "" {
			wrong = append(wrong, w)
		}
		if k.Errors != nil {
			worst.MaxAbs = max(worst.MaxAbs, k.Errors.MaxAbs)
			worst.Norm = max(worst.Norm, k.Errors.Norm)
		}
		parity = parity && k.BitParity != nil && *k.BitParity
		varies = varies || k.Deterministic != nil && !*k.Deterministic
		deterministic = deterministic && k.Deterministic != nil && *k.Deterministic
	}
	passed, total := len(c.Cases)-len(wrong), len(c.Cases)
	if decides(gate, wrong, total) {
		r := j.wrong(wrong, total)
		if varies {
			return j.suspectRace(r)
		}
		return r
	}
	if i := slices.IndexFunc(c.Cases, func(k Case) bool { return k.StateKept }); i >= 0 {
		return GateResult{
			Status: Failed, Reason: ReasonSuspicious,
			Text:   fmt.Sprintf("The output depends on what earlier launches left behind: %s", c.Cases[i].label()),
			ToPass: []string{"compute every output from the launch's own inputs: keep nothing in device variables from one launch to the next"},
		}
	}
	if missing := missingCases(gate, j.evidence); len(missing) > 0 {
		return GateResult{
			Status:  Missing,
			Text:    fmt.Sprintf("%d cases were not run; first: %s", len(missing), missing[0]),
			Details: missing,
		}
	}
	j.notePrecision(c.Cases)
	if len(wrong) > 0 {
		return j.wrongBefore(wrong, passed, total)
	}
	text := fmt.Sprintf("%d/%d cases, max |err| %.4g, norm error %.3g%%", passed, total, worst.MaxAbs, worst.Norm*100)
	if deterministic {
		text += ", deterministic"
	}
	if parity {
		text += ", bit-identical to the baseline"
	}
	return GateResult{Status: Passed, Text: text}
}

// tested tells whether a test command has decided in place of cases.
func (e *Evidence) tested() bool { return e.Correctness != nil && e.Correctness.Test != nil }

func (k Case) label() string {
	name := k.Shape
	if k.Secret {
		name = fmt.Sprintf("secret shape (%s)", k.Dims)
	}
	return fmt.Sprintf("%s, seed %d, %s inputs", name, k.Seed, k.Distribution)
}

// flags names the case to kernelgate check.
func (k Case) flags() string {
	return fmt.Sprintf("--shape %s --seed %d --inputs %s", strings.ReplaceAll(k.Dims, " ", ","), k.Seed, k.Distribution)
}

// replay is the command that repeats one case and shows what is wrong with it.
func (e *Evidence) replay(k Case) string {
	return cmp.Or(e.Provenance.Command, "kernelgate check "+e.Kernel) + " " + k.flags()
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

// Problem is the first thing wrong with the case under a gate, the most telling first, or
// nothing. Without a gate no element may be beyond the tolerance.
func (k Case) Problem(gate *policy.CorrectnessGate) string {
	if all := k.misses(gate); len(all) > 0 {
		return all[0].text
	}
	return ""
}

// missingCases is what the policy asks and the evidence does not have. An
// author who can choose the cases could leave out the ones that fail.
func missingCases(gate *policy.CorrectnessGate, e *Evidence) []string {
	names := e.shapeNames()
	var missing []string
	for _, name := range gate.Shapes.Unknown(names) {
		missing = append(missing, fmt.Sprintf("shape %s, which the kernel's manifest does not have", name))
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
		for _, d := range gate.Distributions {
			for _, seed := range gate.Seeds {
				k := have[key{shape, string(d), uint64(seed)}]
				switch {
				case k == nil:
					missing = append(missing, fmt.Sprintf("%s, seed %d, %s inputs", shape, seed, d))
				case k.Failure != nil: // there is nothing to compare, and that is judged
				case gate.Determinism && k.Deterministic == nil:
					missing = append(missing, k.label()+": a second launch")
				case gate.BitParity && k.BitParity == nil:
					missing = append(missing, k.label()+": the baseline's output")
				}
			}
		}
	}
	if lacking := int(gate.SecretCases) - secret; lacking > 0 {
		missing = append(missing, fmt.Sprintf("%d secret cases", lacking))
	}
	return missing
}

// addCase puts a case into the table, together with its like. A problem that the change
// has caused is shown before one that existed.
func (j *judgement) addCase(k Case, w wrongCase) {
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
	case w.problem == "":
		row.Passed++
	case row.Problem == "" || onlyExisting && !w.existed:
		row.Problem = fmt.Sprintf("seed %d: %s", k.Seed, w.problem)
	}
	if w.existed {
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

// both joins what a row says with what one more case says; unknown stays
// unknown.
func both(row, next *bool, first bool) *bool {
	switch {
	case first:
		return next
	case row == nil || next == nil:
		return nil
	}
	return new(*row && *next)
}

// notePrecision tells when the candidate is right, but by a narrower margin
// than the baseline: a precision that was traded away should be seen.
func (j *judgement) notePrecision(cases []Case) {
	for _, k := range cases {
		if k.Errors == nil || k.Baseline == nil || k.Baseline.Norm == 0 {
			continue
		}
		if factor := k.Errors.Norm / k.Baseline.Norm; factor > 2 && k.Errors.Norm > 1e-4 {
			j.noteText(fmt.Sprintf(
				"The candidate is less precise than the baseline: norm error %.3g%% against %.3g%% (%s).",
				k.Errors.Norm*100, k.Baseline.Norm*100, k.label()))
			return
		}
	}
}
