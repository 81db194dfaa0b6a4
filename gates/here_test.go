package gates

import (
	"slices"
	"strings"
	"testing"
)

// Somebody at a terminal is told the flag, with all rounds, and never a comment.
func TestAdviceAtTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"comment /rebench rounds=27, or gain more on mission":                              "run again with --rounds 49, or gain more on mission",
		"measure more rounds: comment /rebench, or raise performance.budget":               "measure more rounds: run again with --rounds 44, or raise performance.budget",
		"fix the slow launches on small, or measure more rounds: comment /rebench":         "fix the slow launches on small, or measure more rounds: run again with --rounds 44",
		"measure again on a machine that nothing disturbs: comment /rebench":               "measure again on a machine that nothing disturbs: run again",
		"bring the p50 of mission from 3 µs to 2 µs or less (speedup >= +10% over 2.2 µs)": "bring the p50 of mission from 3 µs to 2 µs or less (speedup >= +10% over 2.2 µs)",
	} {
		advice := []string{text}
		if atTerminal(advice, 22); advice[0] != want {
			t.Errorf("%q becomes %q, want %q", text, advice[0], want)
		}
	}
	e := passing()
	e.Performance.Rounds = e.Performance.Rounds[:4]
	p := parsePolicy(t, fullPolicy)
	if v := JudgeHere(p, "test.yaml", e); !slices.Contains(v.ToPass, "measure more rounds: run again with --rounds 8, or raise performance.budget") {
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
	if v := Judge(parsePolicy(t, fullPolicy), "test.yaml", e); len(v.ToPass) != 1 || !strings.Contains(v.ToPass[0], "it saw through this change") {
		t.Errorf("after an edit: %q", v.ToPass)
	}
}
