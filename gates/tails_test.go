package gates

import (
	"strings"
	"testing"
)

// Five launches of a hundred that take three times as long are no median, but whoever
// waits for them waits.
func TestTailsAreGuarded(t *testing.T) {
	spikes := func(share, factor float64) machine {
		rng := newRand(8, 8)
		m := quiet(1.12)
		m.blocks = 50
		m.alter = func(_, _ int, side rune, ns float64) float64 {
			if side == SideCandidate && rng.Float64() < share {
				return ns * factor
			}
			return ns
		}
		return m
	}
	for _, c := range []struct {
		name    string
		machine machine
		tails   string
		outcome Outcome
		says    string
	}{
		{"none", quiet(1.12), "", Pass, "Proven"},
		{"5 % three times as slow", spikes(0.05, 3), "", Defer, "but the speedup of the mean is"},
		{"12 % a half slower", spikes(0.12, 1.5), "", Defer, "but the speedup of the"},
		{"1 % a half slower", spikes(0.01, 1.5), "", Pass, "Proven"},
		{"let go by a word", spikes(0.05, 3), ", tails: none", Pass, "Proven"},
		{"the mean let go", spikes(0.05, 3), ", tails: {mean: none}", Pass, "Proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.machine.measured(newRand(9, 9), 20)
			v := judged(t, `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 50`+c.tails+`}`, e)
			if v.Outcome != c.outcome || !strings.Contains(v.Summary, c.says) {
				t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if c.outcome == Defer && (v.Reason != ReasonTooSlow || len(v.ToPass) == 0) {
				t.Errorf("%s, to pass %q", v.Reason, v.ToPass)
			}
		})
	}
	// At every look alone, over many runs: it does not slip through the first one.
	passed := 0
	for seed := range uint64(60) {
		e := spikes(0.05, 3).measured(newRand(10, seed), 6)
		if judgeQuickly(performancePolicy(t, gate10), e).Outcome == Pass {
			passed++
		}
	}
	if passed > 2 {
		t.Errorf("%d of 60 pass at the first look", passed)
	}
}
