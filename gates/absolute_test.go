package gates

import (
	"strings"
	"testing"
)

// A new kernel is judged by its own times, as far as anything is asked of them.
func TestNewKernel(t *testing.T) {
	const bounded = `{shapes: [mission], speedup: ">= +10%", p50: "<= BOUND"}`
	policy := func(goal string) string {
		return strings.Replace(fullPolicy, `{shapes: [mission], speedup: ">= +10%"}`, goal, 1)
	}
	within, beyond := policy(strings.Replace(bounded, "BOUND", "95us", 1)), policy(strings.Replace(bounded, "BOUND", "70us", 1))
	if within == fullPolicy {
		t.Fatal("the policy has another target")
	}
	for _, c := range []struct {
		name, policy string
		change       func(*Evidence)
		outcome      Outcome
		reason       Reason
		says         string
	}{
		{"nothing is asked of its time", fullPolicy, func(*Evidence) {}, Pass, "", "Timed without a baseline: mission 8"},
		{"and it has none", fullPolicy, func(e *Evidence) { e.Performance = nil }, Pass, "", "Every required gate passed."},
		{"a bound that it keeps", within, func(*Evidence) {}, Pass, "", "mission p50 8"},
		{"a bound that it does not keep", beyond, func(*Evidence) {}, Defer, ReasonTooSlow, "Too slow: mission p50 8"},
		{"a bound and no time", within, func(e *Evidence) { e.Performance = nil }, Defer, ReasonInconclusive, "the kernel is new, and nothing was timed"},
		{"a bound and too few rounds", within, func(e *Evidence) { e.Performance.Rounds = e.Performance.Rounds[:4] }, Defer, ReasonInconclusive, "the first decision is after 6"},
		{"below the roofline", fullPolicy, func(e *Evidence) { e.Shapes[0].FLOPs = 242e12 }, Defer, ReasonSuspicious, "Too good to be true: mission takes 8"},
		{"wrong while timed", fullPolicy, func(e *Evidence) { e.Performance.Rounds[0].Series[0].Worst.Unwritten = 100 }, Defer, ReasonCorrectness, "The output was wrong while it was timed"},
		{"a noisy runner, nothing asked", fullPolicy, func(e *Evidence) { slowControl(e) }, Pass, "", "Timed without a baseline"},
		{"a noisy runner and a bound", within, func(e *Evidence) { slowControl(e) }, Error, ReasonRunner, "The runner is not fit to measure"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			e.Baseline = nil
			c.change(e)
			v := Judge(parsePolicy(t, c.policy), "test.yaml", e)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s, want %s (%s): %s", v.Outcome, v.Reason, v.Summary, c.outcome, c.reason, c.says)
			}
			for _, row := range v.Comparisons {
				if row.Baseline != nil || row.Speedup.Value != 0 || row.Candidate == nil || strings.Contains(row.Goal, "speedup") {
					t.Errorf("the row of %s compares the kernel with itself: %+v", row.Shape, row)
				}
			}
		})
	}
}

// It is timed once, whether anything is asked of its time or not, and never where it failed before.
func TestNextOfANewKernel(t *testing.T) {
	p := parsePolicy(t, fullPolicy)
	e := passing()
	e.Baseline, e.Performance = nil, nil
	if need := Next(p, e); need.Gate != GatePerformance || need.Rounds != 6 {
		t.Errorf("without times it asks for %+v", need)
	}
	e.Correctness.Cases[0].Errors.NaN = 1
	if need := Next(p, e); need.Gate != "" {
		t.Errorf("of a wrong kernel it asks for %+v", need)
	}
	e = passing()
	e.Baseline = nil
	if need := Next(p, e); need.Gate != "" {
		t.Errorf("with times it asks for %+v", need)
	}
}

// slowControl makes the second copy 5 % slower.
func slowControl(e *Evidence) {
	for _, r := range e.Performance.Rounds {
		for _, s := range r.Series {
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				if side == SideControl {
					s.Nanos[i] *= 1.05
				}
			}
		}
	}
}
