package actions_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestEnforce checks that a job under a rule that does not block ends well, with the verdict in its
// outputs, so that no later step takes it for a PASS. A rule on trial in front of a rule that blocks
// lets nothing pass.
func TestEnforce(t *testing.T) {
	before, _, ok := strings.Cut(policyYAML, "rules:\n")
	if !ok {
		t.Fatal("the policy has no rules")
	}
	for name, c := range map[string]struct {
		rules      string
		conclusion string
		exit       int
		says       string
	}{
		"shadow": {"  - {name: default, enforce: shadow}\n", "success", 0, "shadow: would be DEFER (too-slow) scale"},
		"warn":   {"  - {name: default, enforce: warn}\n", "success", 0, "warn: would be DEFER (too-slow) scale"},
		"trial":  {"  - {name: easy, when: {title: \".\"}, enforce: shadow, gates: {performance: none}}\n  - name: default\n", "failure", 1, "DEFER (too-slow) scale"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{".github/kernelgate.yaml": before + "rules:\n" + c.rules}, mayWrite)
			pr := w.propose("tidy", source("speed 1.001"), embedded.PROptions{})
			w.must(w.act("pull_request"), "DEFER", "too-slow", c.exit)
			if check := w.check(pr.HeadSHA(), "kernelgate", c.conclusion); !strings.HasPrefix(check.Title, c.says) {
				t.Errorf("the check says %q", check.Title)
			}
		})
	}
}
