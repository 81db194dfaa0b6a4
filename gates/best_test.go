package gates

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

const bestCommit = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"

// ofBest is a run whose candidate has a true speed, and whose baseline stands so relative to the best.
func ofBest(ratio, baseline float64, unmeasured int) *Evidence {
	e := evidence("mission")
	truth{simulate.Noise{Between: 0.001, Within: 0.005}, map[string]float64{"mission": ratio}, 1, 20}.measure(e, rand.New(rand.NewPCG(7, 7)), 6, 1)
	if baseline > 0 {
		e.Best = []Best{{
			Shape: "mission", Commit: bestCommit, Result: Pass, Time: time.Date(2026, 10, 2, 8, 0, 0, 0, time.UTC), Baseline: baseline, Unmeasured: unmeasured,
			Lost: []Loss{{Commit: strings.Repeat("b", 40), Speedup: -0.04}, {Commit: strings.Repeat("c", 40), Speedup: -0.04}},
		}}
	}
	return e
}

// A change of -4 % passes a guard of -5 %. The sum of several does not pass below_best, and is always named.
func TestBest(t *testing.T) {
	const guard, bounded = `{guard: {speedup: ">= -5%"}}`, `{guard: {speedup: ">= -5%", below_best: "<= 8%"}}`
	for _, c := range []struct {
		name, policy string
		e            *Evidence
		outcome      Outcome
		reason       Reason
		summary      string
		notes        []string
	}{
		{"a loss within the guard", guard, ofBest(0.96, 1, 0), Pass, "", "Proven: speedup −4.", nil},
		{"the sum is named", guard, ofBest(0.96, 0.8493, 0), Pass, "", "Proven: speedup −4.", []string{"With this change, mission is 18.5\u00a0% slower than at its best commit (`a1b2c3d`, PASS of 2026-10-02)."}},
		{"the sum is refused", bounded, ofBest(0.96, 0.94, 0), Defer, ReasonRegression, "(asked below its best <= 8%); these commits made mission slower: `bbbbbbb` −4.0\u00a0%, `ccccccc` −4.0\u00a0%", []string{"mission is 9.8"}},
		{"the sum is within the bound", bounded, ofBest(0.96, 0.99, 0), Pass, "", "Proven", nil},
		{"the bound is not proven to be missed", bounded, ofBest(0.97, 0.92/0.97, 0), Pass, "", "Proven", []string{"mission is 8."}},
		{"who gains is not blamed", bounded, ofBest(1.02, 0.8, 0), Pass, "", "Proven", []string{"mission: +2.0\u00a0% against the baseline, −18.4\u00a0% against its best commit"}},
		{"the same code is not blamed", bounded, func() *Evidence {
			e := ofBest(1, 0.8, 2)
			e.SameCode, e.Candidate.Code, e.Performance = true, e.Baseline.Code, nil
			return e
		}(), Pass, "", "nothing to measure", []string{"With this change, mission is 20.0\u00a0% slower than at its best commit (`a1b2c3d`, PASS of 2026-10-02). 2 merges since then were not measured on this device, and count as no change."}},
		{"the revert", `{target: {speedup: ">= +10%"}}`, ofBest(1/0.8154, 0.8154, 1), Pass, "", "Proven", []string{"mission: +22.6\u00a0% against the baseline, −0.04\u00a0% against its best commit (`a1b2c3d`, PASS of 2026-10-02). One merge since then was not measured on this device, and counts as no change."}},
		{"no mark", bounded, ofBest(0.96, 0, 0), Pass, "", "Proven", []string{"below_best does not apply to mission yet: no merged commit was measured on this shape and device."}},
		{"a guard that is missed says so", bounded, ofBest(0.9, 0.94, 0), Defer, ReasonRegression, "Slower: speedup −10.", []string{"mission is 15."}},
		{"a gate that informs", `{required: false, guard: {speedup: ">= -5%", below_best: "<= 8%"}}`, ofBest(0.96, 0.94, 0), Pass, "", "", []string{"mission is 9.8"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judgeQuickly(performancePolicy(t, c.policy), c.e)
			if v.Outcome != c.outcome || v.Reason != c.reason || !strings.Contains(v.Summary, c.summary) {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			if !slices.EqualFunc(v.Notes, c.notes, strings.Contains) {
				t.Errorf("the notes are %q, want %q", v.Notes, c.notes)
			}
			if len(c.e.Best) != len(v.Best) {
				t.Errorf("%d marks in the verdict, %d in the evidence", len(v.Best), len(c.e.Best))
			}
		})
	}
}

// What evidence says of the best can defer a change, and never lets one pass.
func TestBestPassesNothing(t *testing.T) {
	p := performancePolicy(t, `{guard: {speedup: ">= -5%", below_best: "<= 8%"}}`)
	rng := newRand(41, 1)
	deferred := 0
	for range 60 {
		ratio, baseline := 0.9+0.2*rng.Float64(), 0.5+rng.Float64()
		without, with := judgeQuickly(p, ofBest(ratio, 0, 0)), judgeQuickly(p, ofBest(ratio, baseline, 0))
		if without.Outcome != Pass && (with.Outcome != without.Outcome || with.Reason != without.Reason && with.Reason != ReasonRegression) {
			t.Errorf("ratio %.3f at %.3f of the best: %s (%s) becomes %s (%s)", ratio, baseline, without.Outcome, without.Reason, with.Outcome, with.Reason)
		}
		if without.Outcome == Pass && with.Outcome == Defer {
			deferred++
			if ratio*baseline > 0.93 || ratio > 1.01 {
				t.Errorf("ratio %.3f at %.3f of the best is deferred", ratio, baseline)
			}
		}
	}
	if deferred < 5 {
		t.Errorf("%d were deferred: that is no test", deferred)
	}
}
