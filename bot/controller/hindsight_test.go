package controller

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// The same evidence is judged by the same policy once, and by another anew.
func TestOutcomeIsJudgedOnce(t *testing.T) {
	k := New(Config{})
	times := 0
	judge := func(o gates.Outcome) func() *gates.Verdict {
		return func() *gates.Verdict {
			times++
			return &gates.Verdict{Outcome: o}
		}
	}
	for _, c := range []struct {
		evidence, policy string
		outcome          gates.Outcome
		want             gates.Outcome
		times            int
	}{
		{"one", "old", gates.Pass, gates.Pass, 1},
		{"one", "new", gates.Defer, gates.Defer, 2},
		{"two", "old", gates.Defer, gates.Defer, 3},
		{"one", "old", gates.Defer, gates.Pass, 3},
		{"one", "new", gates.Pass, gates.Defer, 3},
	} {
		if got := k.outcome(c.evidence, c.policy, judge(c.outcome)); got != (change.Judgement{Outcome: c.want}) || times != c.times {
			t.Errorf("%s by the %s policy: %v after %d, want %s after %d", c.evidence, c.policy, got, times, c.want, c.times)
		}
	}
}
