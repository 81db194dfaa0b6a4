package gates

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// Somebody at a terminal is told the flag, with all rounds, and never a comment.
func TestAdviceAtTheTerminal(t *testing.T) {
	at := facts.Reader{Terminal: true, Rounds: 22}
	for want, step := range map[string]facts.Advice{
		"run again with --rounds 49, or gain more on mission":                                                                         facts.AddRounds{Shape: "mission", Rounds: 27},
		"measure more rounds: run again with --rounds 44, or raise performance.budget":                                                facts.MeasureMore{},
		"make the slow launches on small faster: they lose what the median gains, or measure more rounds: run again with --rounds 44": facts.OrMeasureMore{Advice: facts.FixSlowLaunches{Shape: "small"}},
		"measure again on an idle machine: run again":                                                                                 facts.MeasureUndisturbed{},
		"run again: 5 of 6 rounds meet the goal on small, and machine code 3 of this change needs more such rounds":                   facts.AddAgreeingRounds{Shape: "small", Agree: 5, Rounds: 6, CodeNumber: 3},
	} {
		if got := step.Step(at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	e := passing()
	e.Performance.Rounds = e.Performance.Rounds[:4]
	p := parsePolicy(t, fullPolicy)
	if v := JudgeForTerminal(p, "test.yaml", e); !slices.Contains(v.ToPass, "measure more rounds: run again with --rounds 8, or raise performance.budget") {
		t.Errorf("at a terminal: %q", v.ToPass)
	}
	if v := Judge(p, "test.yaml", e); !slices.Contains(v.ToPass, "measure more rounds: comment /rebench, or raise performance.budget") {
		t.Errorf("on a pull request: %q", v.ToPass)
	}
}

// Where nothing was changed yet, nobody is told that the compiler saw through a change.
func TestAdviceOnTheBaseItself(t *testing.T) {
	e := passing()
	e.SameCode, e.Performance = true, nil
	e.Provenance.Base.SHA, e.Provenance.Head = "abc", e.Provenance.Base
	e.Provenance.Head.SHA = "abc"
	v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e)
	if len(v.ToPass) != 1 || !strings.HasPrefix(v.ToPass[0], "this is the base itself") || !strings.HasSuffix(v.ToPass[0], "kernelgate check "+e.Kernel+" --shape "+e.Shapes[0].Name) {
		t.Errorf("on the base: %q", v.ToPass)
	}
	e.Provenance.Head.Dirty = true
	if v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e); len(v.ToPass) != 1 || !strings.Contains(v.ToPass[0], "this change compiles to the baseline's machine code") {
		t.Errorf("after an edit: %q", v.ToPass)
	}
}
