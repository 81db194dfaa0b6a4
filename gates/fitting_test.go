package gates

import (
	"strings"
	"testing"
)

// A change that leaves every bit as it was and gains nothing hears by which label or
// title it would be judged as a refactoring, if there is a way.
func TestFittingRule(t *testing.T) {
	rules := func(text string) string {
		return strings.Replace(fullPolicy, "  - name: default\n", text+"  - name: default\n", 1)
	}
	const relaxed = "    gates: {performance: {target: none}}\n"
	byLabel := rules("  - name: tidy\n    when: {labels: [cleanup, refactoring]}\n" + relaxed)
	same := func(e *Evidence) { e.SameCode, e.Performance = true, nil }
	for _, c := range []struct {
		name   string
		policy string
		change func(*Evidence)
		says   string // "" is nothing
	}{
		{"a label", byLabel, same, "give it the label `cleanup`: the outputs are bit-identical to the baseline's, and the rule `tidy` asks only speedup >= -2% on all"},
		{"a title", rules("  - name: tidy\n    when: {title: \"^refactor:\"}\n" + relaxed), same, "give it a title that matches `^refactor:`"},
		{"nothing but the label is missing", rules("  - name: tidy\n    when: {labels: [tidy], branches: [main]}\n" + relaxed), func(e *Evidence) { same(e); e.Change.Branch = "main" }, "the label `tidy`"},
		{"more than the label is missing", rules("  - name: tidy\n    when: {labels: [tidy], branches: [main]}\n" + relaxed), func(e *Evidence) { same(e); e.Change.Branch = "next" }, ""},
		{"the rule asks for a gain too", rules("  - name: tidy\n    when: {labels: [tidy]}\n    gates: {performance: {target: {speedup: \">= +5%\"}}}\n"), same, ""},
		{"no other rule", fullPolicy, same, ""},
		{"other bits", byLabel, func(e *Evidence) { slower(e, 1.2) }, ""},
		{"the same bits, as fast", byLabel, func(e *Evidence) { slower(e, 1.2); parity(e) }, "the label `cleanup`"},
		{"the same bits, but far slower", byLabel, func(e *Evidence) { slower(e, 2); parity(e) }, ""},
		{"faster as asked", byLabel, parity, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			c.change(e)
			v := Judge(parsePolicy(t, c.policy), "test.yaml", e)
			got := strings.Join(v.ToPass, "\n")
			if c.says == "" && strings.Contains(got, "refactoring") || !strings.Contains(got, c.says) {
				t.Errorf("%s (%s): to pass: %s\nwant %q", v.Outcome, v.Reason, got, c.says)
			}
		})
	}
}

func parity(e *Evidence) {
	for i := range e.Correctness.Cases {
		e.Correctness.Cases[i].BitParity = some(true)
	}
}

// slower makes the candidate take longer on the shape that must gain.
func slower(e *Evidence, factor float64) {
	for i := range e.Performance.Rounds {
		for k := range e.Performance.Rounds[i].Series {
			s := &e.Performance.Rounds[i].Series[k]
			for n, letter := range strings.ReplaceAll(s.Order, " ", "") {
				if s.Shape == "mission" && letter == SideCandidate {
					s.Nanos[n] *= factor
				}
			}
		}
	}
}

// Of conditions of which one is enough, those that do not hold are nobody's failure
// once one does.
func TestAnyIsEnough(t *testing.T) {
	status := func(dram, lts float64) (one, other Status) {
		e := passing()
		e.Profile.Metrics[1].Value, e.Profile.Metrics[2].Value = dram, lts
		v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e)
		return v.Profile[1].Status, v.Profile[2].Status
	}
	if one, other := status(80, 20); one != Informs || other != Passed {
		t.Errorf("one holds: %s, %s", one, other)
	}
	if one, other := status(80, 90); one != Failed || other != Failed {
		t.Errorf("none holds: %s, %s", one, other)
	}
}
