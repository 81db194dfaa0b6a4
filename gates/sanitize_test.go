package gates

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

func sanitizePolicy(t testing.TB, sanitize string) *policy.Policy {
	t.Helper()
	return parsePolicy(t, strings.Replace(fullPolicy, "  performance:", "  sanitize: "+sanitize+"\n  performance:", 1))
}

// sanitized is evidence that meets every gate, with two tools that found nothing.
func sanitized() *Evidence {
	e := passing()
	e.Sanitize = &Sanitize{
		Cases: []Input{
			{Shape: "small", Dims: "S=512", Distribution: "normal"},
			{Shape: "secret1", Dims: "S=77", Seed: 9, Distribution: "normal", Secret: true},
		},
		Tools: []Sanitized{{Tool: "memcheck", With: "compute-sanitizer 2025.3.1"}, {Tool: "racecheck", With: "compute-sanitizer 2025.3.1"}},
	}
	return e
}

func race() Finding {
	return Finding{Kind: KindRace, Text: "a race between write and read of shared memory",
		File: "attention.cu", Line: 123, OtherFile: "attention.cu", OtherLine: 140, Kernel: "attention", Count: 6144}
}

func TestSanitize(t *testing.T) {
	const (
		two     = "{shapes: [small], tools: [memcheck, racecheck]}"
		lenient = "{shapes: [small], tools: [memcheck, racecheck], missing_tool: inform}"
		informs = "{shapes: [small], tools: [memcheck, racecheck], required: false}"
	)
	found := func(e *Evidence) { e.Sanitize.Tools[1].Findings = []Finding{race()} }
	absent := func(e *Evidence) { e.Sanitize = nil }
	skipped := func(e *Evidence) { e.Sanitize = &Sanitize{Skipped: "compute-sanitizer was not found: install it"} }
	for _, c := range []struct {
		name, policy string
		change       func(*Evidence)
		outcome      Outcome
		reason       Reason
		status       Status // of the gate
		says         string
	}{
		{"nothing found", two, func(*Evidence) {}, Pass, "", Passed, "memcheck, racecheck found nothing in 2 cases"},
		{"a race", two, found, Defer, ReasonCorrectness, Failed,
			"racecheck: a race between write and read of shared memory in attention.cu:123 and :140 (6,144 hazards)"},
		{"a race where the gate informs", informs, found, Pass, "", Informs, "racecheck: a race"},
		{"a race where a missing tool informs", lenient, found, Defer, ReasonCorrectness, Failed, "racecheck: a race"},
		{"a warning", two, func(e *Evidence) {
			f := race()
			f.Severity = "warning"
			e.Sanitize.Tools[1].Findings = []Finding{f}
		}, Defer, ReasonCorrectness, Failed, "racecheck: a race"},
		{"a remark", two, func(e *Evidence) {
			f := race()
			f.Severity = "info"
			e.Sanitize.Tools[1].Findings = []Finding{f}
		}, Pass, "", Passed, "found nothing"},
		{"more than one", two, func(e *Evidence) {
			found(e)
			e.Sanitize.Tools[0].Findings = []Finding{{Kind: KindOutOfBounds, Text: "a read of 4 bytes beyond an array", Kernel: "attention", Count: 1}}
			e.Sanitize.Tools[0].Hidden = 3
		}, Defer, ReasonCorrectness, Failed, "memcheck: a read of 4 bytes beyond an array in attention; 4 more"},
		{"findings that nobody listed", two, func(e *Evidence) { e.Sanitize.Tools[0].Hidden = 3 }, Defer, ReasonCorrectness, Failed, "found 3 faults and list none"},

		{"nobody looked", two, absent, Defer, ReasonInconclusive, Missing, "no sanitizer was run"},
		{"nobody looked, and the policy can live with it", lenient, absent, Pass, "", Informs, "no sanitizer was run"},
		{"no tools on the runner", two, skipped, Defer, ReasonInconclusive, Missing, "compute-sanitizer was not found: install it"},
		{"no tools, and the policy can live with it", lenient, skipped, Pass, "", Informs, "compute-sanitizer was not found: install it"},
		{"no tools where the gate informs", informs, skipped, Pass, "", Informs, "compute-sanitizer was not found: install it"},
		{"one tool is missing", two, func(e *Evidence) { e.Sanitize.Tools[1] = Sanitized{Tool: "racecheck", Skipped: "no libtsan"} },
			Defer, ReasonInconclusive, Missing, "memcheck found nothing in 2 cases; not checked: racecheck: no libtsan"},
		{"one tool is missing, and the policy can live with it", lenient,
			func(e *Evidence) { e.Sanitize.Tools[1] = Sanitized{Tool: "racecheck", Skipped: "no libtsan"} },
			Pass, "", Passed, "memcheck found nothing in 2 cases; not checked: racecheck: no libtsan"},
		{"a tool that was asked is not mentioned", two, func(e *Evidence) { e.Sanitize.Tools = e.Sanitize.Tools[:1] },
			Defer, ReasonInconclusive, Missing, "racecheck was not run"},
		{"a tool that has nothing to find", two, func(e *Evidence) { e.Sanitize.Tools[1] = Sanitized{Tool: "racecheck", NotApplicable: "one thread"} },
			Pass, "", Passed, "memcheck found nothing in 2 cases"},

		// What ends a tool while the candidate runs under it is never "missing".
		{"out of time", lenient, func(e *Evidence) {
			e.Sanitize.Tools[1].Failure = &Failure{Kind: "timeout", Detail: "did not end within 5m0s"}
		},
			Defer, ReasonInconclusive, Failed, "racecheck: did not end within 5m0s"},
		{"the kernel ends the process", lenient, func(e *Evidence) {
			e.Sanitize.Tools[0].Failure = &Failure{Kind: "exit", Detail: "the kernel ended its process"}
		},
			Defer, ReasonCorrectness, Failed, "memcheck: the kernel ended its process"},
		{"a shape was left out", lenient, func(e *Evidence) { e.Sanitize.Cases = e.Sanitize.Cases[1:] },
			Defer, ReasonInconclusive, Missing, "not run under the sanitizers: small, normal inputs"},
		{"the secret case was left out", two, func(e *Evidence) { e.Sanitize.Cases = e.Sanitize.Cases[:1] },
			Defer, ReasonInconclusive, Missing, "not run under the sanitizers: 1 secret cases"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sanitized()
			c.change(e)
			v := Judge(sanitizePolicy(t, c.policy), "p.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			i := slices.IndexFunc(v.Gates, func(r GateResult) bool { return r.Gate == "sanitize" })
			if got := v.Gates[i]; got.Status != c.status || !strings.Contains(got.Text, c.says) {
				t.Errorf("the gate: %s: %s\nwant %s: %s", got.Status, got.Text, c.status, c.says)
			}
			if v.Outcome == Pass && c.status == Informs && c.policy == lenient && !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "Nothing checked for races") }) {
				t.Errorf("it passed in silence: %q", v.Notes)
			}
			if c.status == Failed && v.Gates[i+1].Status != NotRun {
				t.Errorf("the gate behind it is %s", v.Gates[i+1].Status)
			}
		})
	}
}

// A race is told in the summary, and on both of its lines.
func TestSanitizeIsShown(t *testing.T) {
	e := sanitized()
	e.Sanitize.Tools[1].Findings = []Finding{race()}
	v := Judge(sanitizePolicy(t, "{shapes: [small], tools: [memcheck, racecheck]}"), "p.yaml", e)
	if !strings.Contains(v.Summary, "a race") {
		t.Errorf("summary %s", v.Summary)
	}
	var lines []int
	for _, d := range v.Findings {
		if d.File != "attention.cu" || d.Severity != "error" || !strings.Contains(d.Message, "6,144 hazards") {
			t.Errorf("annotation %+v", d)
		}
		lines = append(lines, d.Line)
	}
	if !slices.Equal(lines, []int{123, 140}) {
		t.Errorf("annotations on lines %v", lines)
	}
	if len(v.Sanitizers) != 2 || v.Sanitizers[0].Status != Passed || v.Sanitizers[1].Status != Failed {
		t.Errorf("rows %+v", v.Sanitizers)
	}
}

// The sanitizers come after correctness and before the first timing, also where
// the policy can do without them, and are asked for once.
func TestNextSanitizes(t *testing.T) {
	for _, policy := range []string{"{shapes: [small]}", "{shapes: [small], missing_tool: inform}", "{shapes: [small], required: false}"} {
		e := sanitized()
		e.Performance, e.Profile, e.Sanitize = nil, nil, nil
		p := sanitizePolicy(t, policy)
		if need := Next(p, e); need.Gate != "sanitize" {
			t.Errorf("%s: after correctness: %+v", policy, need)
		}
		e.Sanitize = &Sanitize{Skipped: "no tool"}
		want := Gate("")
		if policy != "{shapes: [small]}" {
			want = "performance"
		}
		if need := Next(p, e); need.Gate != want {
			t.Errorf("%s: without tools: %+v, want %q", policy, need, want)
		}
	}
}

// What is right at one time and wrong at another points to the sanitizers.
func TestRacesAreSuspected(t *testing.T) {
	varies := func(e *Evidence) { e.Correctness.Cases[0].Deterministic = some(false) }
	timed := func(e *Evidence) { e.Performance.Rounds[0].Series[0].Worst = &Errors{Elements: 10, NaN: 1} }
	for _, c := range []struct {
		name, policy string
		change       func(*Evidence)
		says         string
	}{
		{"two launches differ", fullPolicy, varies, "write sanitize: {shapes: [SMALL]} below gates"},
		{"wrong while timed", fullPolicy, timed, "write sanitize: {shapes: [SMALL]} below gates"},
		{"two launches differ under a sanitize gate", "", func(e *Evidence) { varies(e); e.Sanitize = nil }, "so that the sanitize gate runs"},
		{"wrong while timed after the sanitizers", "", timed, "found nothing on small; name more shapes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sanitizePolicy(t, "{shapes: [small], tools: [memcheck, racecheck]}")
			if c.policy != "" {
				p = parsePolicy(t, c.policy)
			}
			e := sanitized()
			c.change(e)
			v := Judge(p, "p.yaml", e)
			if v.Reason != ReasonCorrectness || !strings.Contains(strings.Join(v.ToPass, "\n"), c.says) {
				t.Errorf("%s (%s): %q", v.Outcome, v.Reason, v.ToPass)
			}
		})
	}
	e := sanitized()
	e.Correctness.Cases[0].Errors.Norm = 0.5
	if v := Judge(sanitizePolicy(t, "{shapes: [small]}"), "p.yaml", e); strings.Contains(strings.Join(v.ToPass, ""), "race") {
		t.Errorf("a plain mistake is taken for a race: %q", v.ToPass)
	}
}

func TestSanitizeEvidenceIsChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Sanitized)
		says   string
	}{
		{func(r *Sanitized) {}, ""},
		{func(r *Sanitized) { r.Tool = "racecheck" }, "sanitize.tools[1].tool: is empty or named twice"},
		{func(r *Sanitized) { r.Hidden = -1 }, "sanitize.tools[0].hidden: is negative"},
		{func(r *Sanitized) { r.Findings = []Finding{{Kind: KindRace}} }, "sanitize.tools[0].findings[0]: has no kind or no text"},
		{func(r *Sanitized) { r.Findings = []Finding{{Kind: KindRace, Text: "x", Count: -1}} }, "findings[0]: has a negative line or count"},
		{func(r *Sanitized) { r.Findings = []Finding{{Kind: KindRace, Text: "x", Severity: "none"}} }, "findings[0]: has the severity \"none\""},
	} {
		e := sanitized()
		c.change(&e.Sanitize.Tools[0])
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseEvidence("e.json", data)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}
