package gates

import (
	"slices"
	"strings"
	"testing"
)

// Findings that the baseline has as well do not defer, unless others are hidden or new, or the
// policy asks for more.
func TestFindingsOfBefore(t *testing.T) {
	for _, c := range []struct {
		hidden   int
		before   bool // all that is listed was there before
		existing string
		outcome  Outcome
	}{{0, true, "report", Pass}, {0, true, "defer", Defer}, {1, true, "report", Defer}, {0, false, "report", Defer}} {
		e := sanitized()
		tool := &e.Sanitize.Tools[1]
		tool.Findings, tool.Hidden = []Finding{race(), race()}, c.hidden
		tool.Findings[1].Text = "another race"
		tool.Baseline = tool.Findings[:1]
		if c.before {
			tool.Baseline = tool.Findings
		}
		v := Judge(sanitizePolicy(t, "{shapes: [small], tools: [memcheck, racecheck], existing: "+c.existing+"}"), "test.yaml", e)
		if v.Outcome != c.outcome {
			t.Errorf("%+v: %s (%s): %s", c, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// Tools that have nothing to look for leave nothing open, unless one of them is missing.
func TestToolsWithNothingToFind(t *testing.T) {
	const policy = "{shapes: [small], tools: [memcheck, racecheck]}"
	e := sanitized()
	for i := range e.Sanitize.Tools {
		e.Sanitize.Tools[i].NotApplicable = "one thread"
	}
	v := Judge(sanitizePolicy(t, policy), "test.yaml", e)
	expect(t, v, Pass, "", "Proven")
	if i := slices.IndexFunc(v.Gates, func(r GateResult) bool { return r.Gate == GateSanitize }); v.Gates[i].Status != Passed || !strings.Contains(v.Gates[i].Text, "nothing for these tools to find") {
		t.Errorf("%+v", v.Gates[i])
	}
	e.Sanitize.Tools[0].NotApplicable, e.Sanitize.Tools[0].Skipped = "", "not installed"
	expect(t, Judge(sanitizePolicy(t, policy), "test.yaml", e), Defer, ReasonInconclusive, "memcheck: not installed")
}

// Findings count whether they are listed or not, and the summary counts those that it does not name.
func TestHiddenFindings(t *testing.T) {
	for _, c := range []struct {
		listed, hidden int
		says           string
	}{{0, 2, "found 2 faults and list none"}, {1, 0, "(6,144 hazards)"}, {1, 2, "(6,144 hazards); 2 more"}, {2, 1, "(6,144 hazards); 2 more"}} {
		e := sanitized()
		e.Sanitize.Tools[1].Findings, e.Sanitize.Tools[1].Hidden = slices.Repeat([]Finding{race()}, c.listed), c.hidden
		v := Judge(sanitizePolicy(t, "{shapes: [small], tools: [memcheck, racecheck]}"), "test.yaml", e)
		expect(t, v, Defer, ReasonCorrectness, c.says)
		if !strings.HasSuffix(v.Summary, c.says) || v.Sanitizers[1].Status != Failed || v.Sanitizers[0].Status != Passed || (v.Sanitizers[1].Note != "") != (c.hidden > 0) {
			t.Errorf("%+v: %s, %+v", c, v.Summary, v.Sanitizers)
		}
	}
}
