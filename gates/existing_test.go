package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// existingPolicy is fullPolicy with both keys set to a word.
func existingPolicy(t testing.TB, word string) *policy.Policy {
	t.Helper()
	text := strings.Replace(fullPolicy, "determinism: true", "determinism: true\n    existing: "+word, 1)
	return parsePolicy(t, strings.Replace(text, "  performance:", "  sanitize: {shapes: [small], tools: [memcheck, racecheck], existing: "+word+"}\n  performance:", 1))
}

// Every kind of miss, with a baseline that does not have it, has it as badly, and has it
// less badly. Only the middle one is reported; where the policy defers, none is.
func TestExistingCases(t *testing.T) {
	good := Errors{Elements: 1000, MaxAbs: 0.01, MeanAbs: 0.001, Norm: 1e-3}
	with := func(change func(*Errors)) *Errors {
		e := good
		change(&e)
		return &e
	}
	failure := func(kind FailureKind) *Failure { return &Failure{kind, "it failed: " + string(kind)} }
	type side func(*Case)
	errors := func(change func(*Errors)) side { return func(k *Case) { k.Errors = with(change) } }
	baseline := func(change func(*Errors)) side { return func(k *Case) { k.Baseline = with(change) } }
	fails := func(kind FailureKind) side { return func(k *Case) { k.Failure, k.Errors = failure(kind), nil } }
	failed := func(kind FailureKind) side {
		return func(k *Case) { k.BaselineFailure, k.Baseline = failure(kind), nil }
	}
	endToEnd := func(bad int) side { return func(k *Case) { k.EndToEnd = with(func(e *Errors) { e.Bad = bad }) } }
	for name, c := range map[string]struct {
		candidate      side
		same, less, no side
	}{
		"unwritten": {errors(func(e *Errors) { e.Unwritten, e.Bad = 3, 3 }),
			baseline(func(e *Errors) { e.Unwritten, e.Bad = 3, 3 }), baseline(func(e *Errors) { e.Unwritten, e.Bad = 2, 2 }), baseline(func(e *Errors) {})},
		"NaN": {errors(func(e *Errors) { e.NaN, e.Bad = 3, 3 }),
			baseline(func(e *Errors) { e.NaN, e.Bad = 5, 5 }), baseline(func(e *Errors) { e.NaN, e.Bad = 2, 3 }), baseline(func(e *Errors) { e.Inf, e.Bad = 3, 3 })},
		"Inf": {errors(func(e *Errors) { e.Inf, e.Bad = 3, 3 }),
			baseline(func(e *Errors) { e.Inf, e.Bad = 3, 3 }), baseline(func(e *Errors) { e.Inf, e.Bad = 2, 9 }), baseline(func(e *Errors) { e.NaN, e.Bad = 3, 3 })},
		"norm": {errors(func(e *Errors) { e.Norm = 0.021 }),
			baseline(func(e *Errors) { e.Norm = 0.02 }), baseline(func(e *Errors) { e.Norm = 0.015 }), baseline(func(e *Errors) { e.Norm = 0.01 })},
		"norm, just beyond": {errors(func(e *Errors) { e.Norm = 0.0104 }),
			baseline(func(e *Errors) { e.Norm = 0.0101 }), baseline(func(e *Errors) { e.Norm = 0.01 }), baseline(func(e *Errors) { e.Norm = 0.0099 })},
		"max": {errors(func(e *Errors) { e.MaxAbs = 0.1 }),
			baseline(func(e *Errors) { e.MaxAbs = 0.095 }), baseline(func(e *Errors) { e.MaxAbs = 0.07 }), baseline(func(e *Errors) { e.MaxAbs = 0.059 })},
		"bad": {errors(func(e *Errors) { e.Bad = 10 }),
			baseline(func(e *Errors) { e.Bad = 10 }), baseline(func(e *Errors) { e.Bad = 9 }), baseline(func(e *Errors) {})},
		"as many bad elements, far more wrong": {errors(func(e *Errors) { e.Bad, e.MaxAbs = 10, 0.05 }),
			baseline(func(e *Errors) { e.Bad, e.MaxAbs = 10, 0.03 }), baseline(func(e *Errors) { e.Bad, e.MaxAbs = 10, 0.02 }), baseline(func(e *Errors) { e.NaN, e.Bad, e.MaxAbs = 10, 10, 0.05 })},
		"one outlier for all of them": {errors(func(e *Errors) { e.Bad, e.MeanAbs = 10, 0.01 }),
			baseline(func(e *Errors) { e.Bad, e.MeanAbs = 10, 0.0095 }), baseline(func(e *Errors) { e.Bad, e.MeanAbs = 10, 0.005 }), baseline(func(e *Errors) { e.MeanAbs = 0.01 })},
		"two bounds": {errors(func(e *Errors) { e.MaxAbs, e.Norm = 0.1, 0.02 }),
			baseline(func(e *Errors) { e.MaxAbs, e.Norm = 0.1, 0.02 }), baseline(func(e *Errors) { e.MaxAbs, e.Norm = 0.1, 0.009 }), baseline(func(e *Errors) { e.MaxAbs, e.Norm = 0.05, 0.02 })},
		"another size of output": {errors(func(e *Errors) { e.Bad = 10 }),
			baseline(func(e *Errors) { e.Bad = 10 }), baseline(func(e *Errors) { e.Bad, e.Elements = 10, 999 }), func(k *Case) { k.Baseline = nil }},
		"end to end": {endToEnd(20),
			func(k *Case) { k.BaselineEndToEnd = with(func(e *Errors) { e.Bad = 20 }) }, func(k *Case) { k.BaselineEndToEnd = with(func(e *Errors) { e.Bad = 19 }) },
			baseline(func(e *Errors) { e.Bad = 20 })},
		"crash":   {fails(FailureCrash), failed(FailureCrash), failed(FailureTimeout), baseline(func(e *Errors) { e.Bad = 1000 })},
		"timeout": {fails(FailureTimeout), failed(FailureTimeout), failed(FailureCrash), baseline(func(*Errors) {})},
		"address": {fails(FailureIllegalAddress), failed(FailureIllegalAddress), failed(FailureLaunch), baseline(func(*Errors) {})},
		"outside": {func(k *Case) { k.OutOfBounds = true },
			func(k *Case) { k.BaselineFailure = new(WrittenOutside()) }, func(k *Case) { k.BaselineFailure = new(InputsWritten([]string{"Q"})) }, baseline(func(*Errors) {})},
		"inputs": {func(k *Case) { k.InputsChanged = []string{"Q"} },
			func(k *Case) { k.BaselineFailure = new(InputsWritten([]string{"Q"})) }, func(k *Case) { k.BaselineFailure = new(InputsWritten([]string{"K"})) }, baseline(func(*Errors) {})},
		"determinism": {func(k *Case) { k.Deterministic = some(false) },
			func(k *Case) { k.BaselineDeterministic = some(false) }, func(k *Case) { k.BaselineDeterministic = some(true) }, func(*Case) {}},
	} {
		for state, at := range map[string]struct {
			side   side
			passes bool
		}{"as badly": {c.same, true}, "less badly": {c.less, false}, "not at all": {c.no, false}} {
			for _, word := range []string{"report", "defer"} {
				for _, secret := range []int{0, 1} { // the second case is a secret one
					e := sanitized()
					k := &e.Correctness.Cases[secret]
					k.Errors, k.Baseline = with(func(*Errors) {}), with(func(*Errors) {})
					c.candidate(k)
					at.side(k)
					v := Judge(existingPolicy(t, word), "p.yaml", e)
					want := Defer
					if at.passes && word == "report" {
						want = Pass
					}
					if v.Outcome != want || want == Defer && v.Reason != ReasonCorrectness {
						t.Errorf("%s, the baseline %s, %s: %s (%s): %s", name, state, word, v.Outcome, v.Reason, v.Summary)
					}
					if e.Baseline = nil; Judge(existingPolicy(t, word), "p.yaml", e).Outcome == Pass {
						t.Errorf("%s, the baseline %s, %s: passes as a new kernel", name, state, word)
					}
				}
			}
		}
	}
}

// What never exists already, whatever the baseline does.
func TestNeverExisting(t *testing.T) {
	for name, change := range map[string]func(*Case){
		"state":     func(k *Case) { k.Failure = &Failure{FailureState, "it keeps state"}; k.BaselineFailure = k.Failure },
		"refused":   func(k *Case) { k.Failure = &Failure{FailureRefused, "it calls"}; k.BaselineFailure = k.Failure },
		"kept":      func(k *Case) { k.StateKept = true; k.BaselineFailure = &Failure{FailureState, "it keeps state"} },
		"no output": func(k *Case) { k.Errors = nil; k.BaselineFailure = &Failure{FailureCrash, "it crashed"} },
		"new crash": func(k *Case) {
			k.Failure = &Failure{FailureCrash, "it crashed"}
			k.Baseline = &Errors{Elements: 1, NaN: 1}
		},
		"one of each": func(k *Case) {
			k.OutOfBounds, k.InputsChanged = true, []string{"Q"}
			k.BaselineFailure = new(WrittenOutside())
		},
	} {
		e := sanitized()
		change(&e.Correctness.Cases[0])
		if v := Judge(existingPolicy(t, "report"), "p.yaml", e); v.Outcome != Defer || !v.Reason.ProvenWrong() {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// A pass that leaves something wrong says so in its first line, its table, its notes and
// its gate; a case that is wrong on both sides everywhere proves nothing.
func TestExistingIsShown(t *testing.T) {
	e := sanitized()
	wrong := Errors{Elements: 1000, MaxAbs: 0.01, MeanAbs: 1e-3, Norm: 1e-3, Bad: 7}
	e.Correctness.Cases[0].Errors, e.Correctness.Cases[0].Baseline = &wrong, &wrong
	e.Sanitize.Tools[1].Findings, e.Sanitize.Tools[1].Baseline = []Finding{race()}, []Finding{race()}
	v := Judge(existingPolicy(t, "report"), "p.yaml", e)
	if v.Outcome != Pass || !strings.HasPrefix(v.Summary, "Proven: speedup") || !strings.HasSuffix(v.Summary, ". Not everything is right: 1 of 2 cases fail as before, 1 sanitizer finding as before.") {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
	said := strings.Join(v.Notes, "\n")
	for _, part := range []string{"The baseline is wrong in 1 of 2 cases", "7 of 1000 elements", "The baseline has a mistake that this change did not cause: racecheck: a race", "base branch"} {
		if !strings.Contains(said, part) {
			t.Errorf("the notes do not say %q: %q", part, v.Notes)
		}
	}
	if v.Gates[2].Text != "1 of 2 cases agree with the reference; 1 fail as they did before this change (see below)" {
		t.Errorf("the gate says %s", v.Gates[2].Text)
	}
	if row := v.Correctness[0]; row.Existing != 1 || row.Passed != 0 {
		t.Errorf("row %+v", row)
	}
	if row := v.Sanitizers[1]; row.Status != Informs || !row.Findings[0].Before {
		t.Errorf("row %+v", row)
	}
	for _, d := range v.Findings {
		if d.Severity != "note" {
			t.Errorf("annotation %+v", d)
		}
	}
	e.Correctness.Cases[1].Errors, e.Correctness.Cases[1].Baseline = &wrong, &wrong
	if v := Judge(existingPolicy(t, "report"), "p.yaml", e); v.Outcome != Error || v.Reason != ReasonSetup {
		t.Errorf("wrong everywhere: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// A kernel that adds atomically varies in every case, and its outputs are right.
func TestExistingVariesEverywhere(t *testing.T) {
	e := sanitized()
	for i := range e.Correctness.Cases {
		e.Correctness.Cases[i].Deterministic, e.Correctness.Cases[i].BaselineDeterministic = some(false), some(false)
	}
	if v := Judge(existingPolicy(t, "report"), "p.yaml", e); v.Outcome != Pass {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// An author hides a new mistake of timed launches behind an old one.
func TestExistingTimedOutputs(t *testing.T) {
	good := Errors{Elements: 1000, MaxAbs: 0.01, MeanAbs: 1e-3, Norm: 1e-3}
	bad := func(n int) Errors {
		e := good
		e.Bad = n
		return e
	}
	output := func(dist string, candidate, baseline Errors) TimedOutput {
		return TimedOutput{dist, candidate, baseline}
	}
	for name, c := range map[string]struct {
		worst   Errors
		outputs []TimedOutput
		passes  bool
	}{
		"as before":                    {bad(9), []TimedOutput{output("large", bad(9), bad(9)), output("large", bad(3), bad(4))}, true},
		"better":                       {bad(9), []TimedOutput{output("large", bad(9), bad(90))}, true},
		"only the baseline":            {good, []TimedOutput{output("large", good, bad(9))}, true},
		"no word on the baseline":      {bad(9), nil, false},
		"worse":                        {bad(9), []TimedOutput{output("large", bad(9), bad(8))}, false},
		"another input":                {bad(9), []TimedOutput{output("large", bad(9), bad(9)), output("normal", bad(9), good)}, false},
		"an output that is not listed": {bad(9), []TimedOutput{output("large", bad(8), bad(9))}, false},
		"another figure, not listed":   {Errors{Elements: 1000, Norm: 0.5, Bad: 9}, []TimedOutput{output("large", bad(9), bad(9))}, false},
		"NaN, not listed":              {Errors{Elements: 1000, NaN: 1, Bad: 9}, []TimedOutput{output("large", bad(9), bad(9))}, false},
	} {
		e := sanitized()
		s := &e.Performance.Rounds[2].Series[0]
		s.Worst, s.Outputs = &c.worst, c.outputs
		want := Defer
		if c.passes {
			want = Pass
		}
		v := Judge(existingPolicy(t, "report"), "p.yaml", e)
		if v.Outcome != want {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
		if c.passes && c.worst.Bad > 0 && !strings.Contains(v.Summary, "timed outputs on mission are wrong as before") {
			t.Errorf("%s: %s", name, v.Summary)
		}
		if v := Judge(existingPolicy(t, "defer"), "p.yaml", e); c.worst.Bad > 0 && v.Outcome != Defer {
			t.Errorf("%s, where the policy defers: %s", name, v.Outcome)
		}
		if e.Baseline = nil; c.worst.Bad > 0 && Judge(existingPolicy(t, "report"), "p.yaml", e).Outcome == Pass {
			t.Errorf("%s: passes as a new kernel, whose baseline is itself", name)
		}
	}
}

// Findings of the candidate beside those of the baseline.
func TestExistingFindings(t *testing.T) {
	at := func(line int, change func(*Finding)) Finding {
		f := Finding{Kind: KindOutOfBounds, Text: "a read of 4 bytes outside the argument x", File: "k.cu", Line: line, Kernel: "scale", Count: 2, Cases: []int{0, 1}}
		if change != nil {
			change(&f)
		}
		return f
	}
	list := func(all ...Finding) []Finding { return all }
	for name, c := range map[string]struct {
		is, was []Finding
		change  func(*Sanitized)
		passes  bool
	}{
		"the same":                   {list(at(5, nil)), list(at(5, nil)), nil, true},
		"on another line":            {list(at(50, nil)), list(at(5, nil)), nil, true},
		"less often":                 {list(at(5, func(f *Finding) { f.Count = 1 })), list(at(5, nil)), nil, true},
		"one of two":                 {list(at(5, nil)), list(at(5, nil), at(6, nil)), nil, true},
		"another tile size":          {list(at(5, func(f *Finding) { f.Kernel = "scale<64>" })), list(at(5, func(f *Finding) { f.Kernel = "scale<128>" })), nil, true},
		"nothing before":             {list(at(5, nil)), nil, nil, false},
		"a second line":              {list(at(5, nil), at(9, nil)), list(at(5, nil)), nil, false},
		"a second line, less often":  {list(at(5, func(f *Finding) { f.Count = 1 }), at(9, func(f *Finding) { f.Count = 1 })), list(at(5, nil)), nil, false},
		"another line, more often":   {list(at(9, func(f *Finding) { f.Count = 3 })), list(at(5, nil)), nil, false},
		"another case":               {list(at(5, func(f *Finding) { f.Cases = []int{1}; f.Count = 1 })), list(at(5, func(f *Finding) { f.Cases = []int{0} })), nil, false},
		"cases on one side alone":    {list(at(5, nil)), list(at(5, func(f *Finding) { f.Cases = nil })), nil, false},
		"another function":           {list(at(5, func(f *Finding) { f.Kernel = "load" })), list(at(5, nil)), nil, false},
		"another access":             {list(at(5, func(f *Finding) { f.Text = "a write of 4 bytes outside the argument x" })), list(at(5, nil)), nil, false},
		"another size":               {list(at(5, func(f *Finding) { f.Text = "a read of 16 bytes outside the argument x" })), list(at(5, nil)), nil, false},
		"another kind":               {list(at(5, func(f *Finding) { f.Kind = KindUninitialised })), list(at(5, nil)), nil, false},
		"a remark became an error":   {list(at(5, nil)), list(at(5, func(f *Finding) { f.Severity = "info" })), nil, false},
		"a warning became an error":  {list(at(5, nil)), list(at(5, func(f *Finding) { f.Severity = "warning" })), nil, false},
		"nowhere":                    {list(at(0, func(f *Finding) { f.File, f.Kernel = "", "" })), list(at(0, func(f *Finding) { f.File, f.Kernel = "", "" })), nil, false},
		"hidden ones":                {list(at(5, nil)), list(at(5, nil)), func(r *Sanitized) { r.Hidden = 1 }, false},
		"it did not come to its end": {list(at(5, nil)), list(at(5, nil)), func(r *Sanitized) { r.Failure = &Failure{FailureCrash, "it crashed"} }, false},
		"a remark beside it":         {list(at(5, nil), at(9, func(f *Finding) { f.Severity = "info" })), list(at(5, nil)), nil, true},
		"two of one, one of another": {list(at(5, nil), at(6, nil)), list(at(5, nil), at(6, func(f *Finding) { f.Kernel = "load" })), nil, false},
	} {
		e := sanitized()
		run := &e.Sanitize.Tools[0]
		run.Findings, run.Baseline = c.is, c.was
		if c.change != nil {
			c.change(run)
		}
		v := Judge(existingPolicy(t, "report"), "p.yaml", e)
		if want := map[bool]Outcome{true: Pass, false: Defer}[c.passes]; v.Outcome != want || want == Defer && v.Reason != ReasonCorrectness {
			t.Errorf("%s: %s (%s): %s", name, v.Outcome, v.Reason, v.Summary)
		}
		if v := Judge(existingPolicy(t, "defer"), "p.yaml", e); v.Outcome != Defer {
			t.Errorf("%s, where the policy defers: %s", name, v.Outcome)
		}
		if e.Baseline = nil; Judge(existingPolicy(t, "report"), "p.yaml", e).Outcome != Defer {
			t.Errorf("%s: passes as a new kernel", name)
		}
	}
}

// Of several findings those that are new are named first, and only those are failures.
func TestNewFindingBesideExisting(t *testing.T) {
	e := sanitized()
	old := Finding{Kind: KindOutOfBounds, Text: "a read of 4 bytes outside the argument x", File: "k.cu", Line: 5, Kernel: "scale"}
	next := old
	next.Line = 9
	e.Sanitize.Tools[0].Findings, e.Sanitize.Tools[0].Baseline = []Finding{old, next}, []Finding{old}
	v := Judge(existingPolicy(t, "report"), "p.yaml", e)
	if v.Outcome != Defer || !strings.Contains(v.Summary, "k.cu:9; 1 more") {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
	severities := map[int]string{}
	for _, d := range v.Findings {
		severities[d.Line] = d.Severity
	}
	if severities[5] != "note" || severities[9] != "error" {
		t.Errorf("annotations %v", severities)
	}
}

// Evidence that no runner writes is refused with the place of its mistake.
func TestExistingEvidenceIsChecked(t *testing.T) {
	for says, change := range map[string]func(*Evidence){
		"correctness.cases[0].baseline: has a negative figure":            func(e *Evidence) { e.Correctness.Cases[0].Baseline = &Errors{Elements: 9, NaN: -9} },
		"correctness.cases[1].baseline_end_to_end: has a negative figure": func(e *Evidence) { e.Correctness.Cases[1].BaselineEndToEnd = &Errors{Norm: -1} },
		"performance.rounds[0].series[0].outputs[0]: has a negative figure": func(e *Evidence) {
			e.Performance.Rounds[0].Series[0].Outputs = []TimedOutput{{Baseline: Errors{Inf: -1}}}
		},
		"performance.rounds[0].series[0].worst: has a negative figure": func(e *Evidence) { e.Performance.Rounds[0].Series[0].Worst.Bad = -1 },
		"sanitize.tools[0].baseline[0]: has no kind or no text":        func(e *Evidence) { e.Sanitize.Tools[0].Baseline = []Finding{{Kind: KindRace}} },
		"sanitize.tools[0].findings[0]: names the cases [2] of 2": func(e *Evidence) {
			e.Sanitize.Tools[0].Findings = []Finding{{Kind: KindRace, Text: "x", Cases: []int{2}}}
		},
		"sanitize.tools[0].baseline[0]: names the cases [-1] of 2": func(e *Evidence) {
			e.Sanitize.Tools[0].Baseline = []Finding{{Kind: KindRace, Text: "x", Cases: []int{-1}}}
		},
	} {
		e := sanitized()
		change(e)
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseEvidence("e.json", data); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// Next goes on to measure after findings that the baseline has as well.
func TestNextAfterExisting(t *testing.T) {
	e := sanitized()
	e.Performance, e.Profile = nil, nil
	e.Sanitize.Tools[1].Findings, e.Sanitize.Tools[1].Baseline = []Finding{race()}, []Finding{race()}
	for word, want := range map[string]Gate{"report": GatePerformance, "defer": ""} {
		if need := Next(existingPolicy(t, word), e); need.Gate != want {
			t.Errorf("%s: %+v", word, need)
		}
	}
}
