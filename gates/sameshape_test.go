package gates

import (
	"slices"
	"strings"
	"testing"
)

// Where a choice gives a shape to the code that served it before, there is nothing to measure, and nothing gained.
func TestSameShapes(t *testing.T) {
	p := parsePolicy(t, fullPolicy) // a gain on mission, and no loss elsewhere
	e := passing()
	e.SameShapes = []string{"small"}
	for i := range e.Performance.Rounds {
		r := &e.Performance.Rounds[i]
		r.Series = slices.DeleteFunc(r.Series, func(s Series) bool { return s.Shape == "small" })
	}
	if got := TimedShapes(&p.Rules[0], e); !slices.Equal(got, []string{"mission"}) {
		t.Errorf("%q are timed", got)
	}
	v := Judge(p, "test.yaml", e)
	if v.Outcome != Pass || len(v.Comparisons) != 2 || !v.Comparisons[1].Same || v.Comparisons[1].Status != Passed || v.Comparisons[1].Shape != "small" || v.Comparisons[0].Same {
		t.Errorf("%s (%s): %s\n%+v", v.Outcome, v.Reason, v.Summary, v.Comparisons)
	}
	// Without the word that they are the same, they are missing.
	e.SameShapes = nil
	if v := Judge(p, "test.yaml", e); v.Outcome == Pass {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
	// A gain is asked of a shape that did not change.
	e = passing()
	e.SameShapes, e.Performance = []string{"mission"}, nil
	if need := Next(p, e); need.Gate != "" {
		t.Errorf("it asks for %+v", need)
	}
	v = Judge(p, "test.yaml", e)
	if i := slices.IndexFunc(v.Comparisons, func(c Comparison) bool { return c.Shape == "mission" }); i < 0 || v.Comparisons[i].Status != Failed || !v.Comparisons[i].Same {
		t.Errorf("%+v", v.Comparisons)
	}
	if v.Reason != ReasonTooSlow || !strings.Contains(v.Summary, "mission runs the baseline's machine code, so nothing was gained there") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	// No gain is asked, and nothing that is timed has changed.
	guard := parsePolicy(t, strings.Replace(fullPolicy, "    target: {shapes: [mission], speedup: \">= +10%\"}\n", "", 1))
	e.SameShapes = []string{"mission", "small"}
	if need := Next(guard, e); need.Gate != "" {
		t.Errorf("it asks for %+v", need)
	}
	if v := Judge(guard, "test.yaml", e); v.Outcome != Pass || !strings.Contains(v.Summary, "nothing to measure") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	// A bound on the time itself needs a clock, whatever the code is.
	bound := parsePolicy(t, strings.Replace(fullPolicy, `speedup: ">= -2%"`, `speedup: ">= -2%", p50: "<= 1ms"`, 1))
	e = passing()
	e.SameShapes = []string{"small"}
	if got := TimedShapes(&bound.Rules[0], e); !slices.Equal(got, []string{"mission", "small"}) {
		t.Errorf("with a bound on its time, %q are timed", got)
	}
}
