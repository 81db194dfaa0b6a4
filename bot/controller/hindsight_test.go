package controller

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
)

// The same evidence is judged by the same two policies once, and again by others.
func TestHindsightIsJudgedOnce(t *testing.T) {
	k := New(Config{})
	times := 0
	judge := func(o gates.Outcome) func() hindsight.Row {
		return func() hindsight.Row {
			times++
			return hindsight.Row{New: hindsight.Judgement{Outcome: o}}
		}
	}
	for _, c := range []struct {
		evidence, old, new string
		outcome            gates.Outcome
		want               gates.Outcome
		times              int
	}{
		{"one", "old", "new", gates.Pass, gates.Pass, 1},
		{"one", "old", "newer", gates.Defer, gates.Defer, 2},
		{"two", "old", "new", gates.Defer, gates.Defer, 3},
		{"one", "other", "new", gates.Defer, gates.Defer, 4},
		{"one", "old", "new", gates.Defer, gates.Pass, 4},
		{"one", "old", "newer", gates.Pass, gates.Defer, 4},
	} {
		if got := k.hindsight(c.evidence, c.old, c.new, judge(c.outcome)); got.New.Outcome != c.want || times != c.times {
			t.Errorf("%s by %s and %s: %v after %d, want %s after %d", c.evidence, c.old, c.new, got.New, times, c.want, c.times)
		}
	}
}
