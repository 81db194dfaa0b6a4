package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A pull request that edits the policy shows what the new policy makes of past runs: the verdicts
// that would be different with the reason, and the evidence that would not suffice.
func TestPolicyOnPastRuns(t *testing.T) {
	w := newWorld(t, worldOptions{})
	fast := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(fast.HeadSHA(), "success")
	slow := w.propose("slower", "// speed 0.9\n", embedded.PROptions{Title: "Slower", Author: "mara"})
	w.concluded(slow.HeadSHA(), "failure")
	strict := w.edit("strict", policyFile, strings.Replace(policyYAML, "+10%", "+50%", 1), embedded.PROptions{})
	w.concluded(strict.HeadSHA(), "success")
	w.said(strict, "The new policy would change 1 of the last 2 verdicts")
	w.said(strict, "| PASS | DEFER (too-slow) | Too slow: speedup +30")
	more := w.edit("more", policyFile, strings.NewReplacer("min: 6, max: 8", "min: 9, max: 12", "interims: [6, 8]", "interims: [9, 12]").Replace(policyYAML), embedded.PROptions{})
	w.concluded(more.HeadSHA(), "action_required")
	w.said(more, "and 2 would need more evidence")
	w.said(more, "6 rounds are there, and it decides after 9 at the earliest")
	shadow := w.edit("shadow", policyFile, withRules(t, "", "shadow"), embedded.PROptions{})
	w.concluded(shadow.HeadSHA(), "action_required")
	w.said(shadow, "| DEFER (regression) | shadow: DEFER (regression) |")
	w.golden("policy-past", []*embedded.PR{strict, more, shadow})
}
