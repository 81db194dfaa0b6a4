package result

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Of returns a verdict for programs. The evidence behind it names the first bad cases and their
// classes; without it (nil) a wrong case has the class wrong-values.
func Of(v *gates.Verdict, e *gates.Evidence) *Result {
	r := &Result{
		Schema: Schema, Kernel: v.Kernel, Outcome: v.Outcome, Reason: v.Reason, Summary: v.Summary, Blocks: v.Blocks(), Rule: v.Rule,
		Base: v.Provenance.Base.SHA, Head: v.Provenance.Head.SHA, Replay: v.Provenance.Command, ToPass: report.ToPass(v),
		Label: v.Provenance.Label,
	}
	for _, other := range v.Elsewhere {
		r.OtherDevices = append(r.OtherDevices, OtherDevice(other))
	}
	if v.Device.Name != "" {
		r.Device = &Device{Kind: v.Device.Kind, Name: v.Device.Name, Arch: v.Device.Arch}
	}
	r.Weighted, r.WeightedWarm = weightedOf(v.Weighted), weightedOf(v.WeightedWarm)
	for _, c := range v.Comparisons {
		r.Shapes = append(r.Shapes, shapeOf(c))
	}
	if e != nil && e.Candidate != nil {
		r.Code = e.Candidate.Code
	}
	r.Failures = failures(v, e)
	return r
}

func shapeOf(c gates.Comparison) Shape {
	s := Shape{Shape: c.Shape, Dims: c.Dims, Role: c.Role, Status: c.Status, Goal: c.Goal, Roofline: c.Roofline}
	if c.Secret {
		s.Shape = Secret
	}
	if c.Baseline != nil {
		s.Baseline = &c.Baseline.P50
	}
	if us := c.CandidateTime(); us > 0 {
		s.Candidate = &us
	}
	if c.Speedup.Known() {
		s.Speedup = &Speedup{Low: c.Speedup.Lower, Mid: c.Speedup.Value, High: c.Speedup.Upper}
	}
	return s
}

func weightedOf(w *gates.WeightedSpeed) *Weighted {
	if w == nil {
		return nil
	}
	r := &Weighted{Role: w.Role, Status: w.Status, Goal: w.Goal, Baseline: &w.Baseline, Candidate: &w.Candidate, Saved: &w.Saved.Value}
	r.Speedup = &Speedup{Low: w.Speedup.Lower, Mid: w.Speedup.Value, High: w.Speedup.Upper}
	if s := w.Step; s != nil {
		r.Share = &s.Share
		r.Step = &Speedup{Low: s.Speedup.Lower, Mid: s.Speedup.Value, High: s.Speedup.Upper}
	}
	return r
}

// sums is all launches of a step, cold and warm.
func (r *Result) sums() []*Weighted {
	return slices.DeleteFunc([]*Weighted{r.Weighted, r.WeightedWarm}, func(w *Weighted) bool { return w == nil })
}

// failures lists what did not meet the policy, in the order of the gates. A gate that failed without
// naming a row is one failure.
func failures(v *gates.Verdict, e *gates.Evidence) []Failure {
	var all []Failure
	for _, g := range v.Gates {
		if !g.Required || g.Status != gates.Failed && g.Status != gates.Open && g.Status != gates.Missing {
			continue
		}
		found := rows(g.Gate, v, e)
		if len(found) == 0 {
			found = []Failure{{Kind: KindGate, Count: 1, FirstBad: &FirstBad{Text: g.Text}}}
		}
		for i := range found {
			found[i].Gate = g.Gate
		}
		all = append(all, found...)
	}
	return all
}

func rows(gate gates.Gate, v *gates.Verdict, e *gates.Evidence) []Failure {
	switch gate {
	case gates.GateBuild:
		return refusals(v)
	case gates.GatePTXAS:
		return overLimits(v)
	case gates.GateCorrectness:
		return wrongCases(v, e)
	case gates.GateSanitize:
		return findings(v)
	case gates.GatePerformance:
		return slow(v)
	case gates.GateProfile:
		return metrics(v)
	}
	return nil
}

func refusals(v *gates.Verdict) []Failure {
	errors := slices.DeleteFunc(slices.Clone(v.Findings), func(d gates.Diagnostic) bool { return d.Severity != "error" })
	if len(errors) == 0 {
		return nil
	}
	first := errors[0]
	return []Failure{{Kind: KindCompile, Count: len(errors), FirstBad: &FirstBad{File: first.File, Line: first.Line, Text: first.Message}}}
}

func overLimits(v *gates.Verdict) []Failure {
	var all []Failure
	for _, r := range v.Resources {
		if r.Status == gates.Failed {
			all = append(all, Failure{Kind: KindOverLimit, Count: 1, FirstBad: &FirstBad{Text: overLimit(r)}})
		}
	}
	return all
}

func overLimit(r gates.ResourceRow) string {
	got := "not known"
	if r.Candidate != nil {
		got = strings.TrimSpace(strconv.FormatFloat(*r.Candidate, 'f', -1, 64) + " " + r.Unit)
	}
	return fmt.Sprintf("%s: %s (the policy asks for %s)", r.Name, got, r.Limit)
}

// wrongCases adds up the rows of each shape and class; secret cases are one shape.
func wrongCases(v *gates.Verdict, e *gates.Evidence) []Failure {
	var all []Failure
	for _, row := range v.Correctness {
		if row.Passed == row.Total {
			continue
		}
		shape := row.Shape
		if row.Secret {
			shape = Secret
		}
		kind, first := classOf(row, e)
		i := slices.IndexFunc(all, func(f Failure) bool { return f.Shape == shape && f.Kind == kind })
		if i < 0 {
			all, i = append(all, Failure{Shape: shape, Kind: kind, FirstBad: first}), len(all)
		}
		all[i].Count += row.Total - row.Passed
	}
	return all
}

// classOf returns the class of a row's wrong cases, and the first of them.
func classOf(row gates.CaseRow, e *gates.Evidence) (Kind, *FirstBad) {
	first := &FirstBad{Dims: row.Dims, Inputs: row.Distribution, Text: row.Problem}
	if e == nil || e.Correctness == nil {
		return KindWrongValues, first
	}
	for _, k := range e.Correctness.Cases {
		// the text is about the first case that the change has broken
		text, named := strings.CutPrefix(row.Problem, fmt.Sprintf("seed %d: ", k.Seed))
		if named && k.Shape == row.Shape && k.Dims == row.Dims && k.Distribution == row.Distribution && k.Secret == row.Secret {
			first.Seed, first.Text = &k.Seed, text
			return caseKind(k), first
		}
	}
	return KindWrongValues, first
}

// caseKind is the class of a case that fails.
func caseKind(k gates.Case) Kind {
	switch {
	case k.Failure != nil:
		return Kind(k.Failure.Kind)
	case len(k.InputsChanged) > 0:
		return Kind(gates.FailureInputs)
	case k.OutOfBounds:
		return Kind(gates.FailureOutOfBounds)
	case k.StateKept:
		return KindKeepsState
	case k.Errors == nil:
		return KindNotCompared
	case k.Errors.NaN > 0:
		return KindNaN
	case k.Errors.Inf > 0:
		return KindInf
	case k.Errors.Unwritten > 0:
		return KindUnwritten
	case k.Errors.Bad == 0 && k.Deterministic != nil && !*k.Deterministic:
		return KindNotDeterministic
	}
	return KindWrongValues
}

func findings(v *gates.Verdict) []Failure {
	var all []Failure
	for _, row := range v.Sanitizers {
		if row.Status != gates.Failed {
			continue
		}
		f := Failure{Kind: KindFinding, Count: 1, FirstBad: &FirstBad{Text: cmp.Or(row.Note, row.Tool)}}
		if len(row.Findings) > 0 {
			first := row.Findings[0]
			f.Kind, f.Shape, f.Count = Kind(first.Kind), first.Shape, len(row.Findings)
			f.FirstBad = &FirstBad{File: first.File, Line: first.Line, Text: first.Sentence()}
		}
		all = append(all, f)
	}
	return all
}

func slow(v *gates.Verdict) []Failure {
	var all []Failure
	for _, c := range v.Judged() {
		kind := map[gates.Status]Kind{gates.Failed: KindTooSlow, gates.Open: KindUndecided}[c.Status]
		if kind == "" || c.Role == gates.RoleInfo {
			continue
		}
		f := Failure{Shape: c.Shape, Kind: kind, Count: 1}
		if c.Secret {
			f.Shape = Secret
		} else {
			f.FirstBad = &FirstBad{Dims: c.Dims, Text: goalMissed(c)}
		}
		all = append(all, f)
	}
	return all
}

func goalMissed(c gates.Comparison) string {
	text := "there is no speedup"
	if c.Speedup.Known() {
		text = "the speedup is " + c.Speedup.Gain()
	}
	if c.Goal != "" {
		text += fmt.Sprintf(" (the policy asks for %s)", c.Goal)
	}
	return text
}

func metrics(v *gates.Verdict) []Failure {
	var all []Failure
	for _, m := range v.Profile {
		if m.Status == gates.Failed {
			all = append(all, Failure{Shape: m.Shape, Kind: KindMetric, Count: 1, FirstBad: &FirstBad{Text: m.Metric + " is not " + m.Limit}})
		}
	}
	return all
}
