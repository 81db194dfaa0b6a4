package actions_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestDevicesInAWorkflow checks that a job, which runs on one machine, never lets a change pass whose policy asks for a device that
// this machine is not, and that a device that only informs keeps nothing back.
func TestDevicesInAWorkflow(t *testing.T) {
	for devices, want := range map[string]struct {
		verdict, reason string
		exit            int
		says            string
	}{
		"{all: [cpu, h200]}":             {"ERROR", "runner", 3, "the policy asks for a verdict on h200, and this runner is cpu: a job of a workflow runs on one machine"},
		"{block: [cpu], inform: [h200]}": {"PASS", "", 0, "inform: would be ERROR"},
		"{all: [cpu]}":                   {"PASS", "", 0, "PASS"},
		"{block: [h200], inform: [cpu]}": {"ERROR", "runner", 3, "this runner is cpu"},
	} {
		t.Run(devices, func(t *testing.T) {
			w := newWorld(t, nil, mayWrite)
			_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "devices: [cpu]", "devices: "+devices, 1)}, "Devices")
			w.no(err)
			pr := w.propose("faster", source("speed 1.5"), embedded.PROptions{})
			w.must(w.act("pull_request"), want.verdict, want.reason, want.exit)
			c, ok := w.repo.Check(pr.HeadSHA(), "kernelgate")
			if passes := c.Conclusion == "success"; !ok || passes != (want.verdict == "PASS") {
				t.Errorf("the required check: %s %s: %s", c.Status, c.Conclusion, c.Title)
			}
			said := c.Title + c.Summary
			for _, comment := range pr.Comments() {
				said += comment.Body
			}
			if !strings.Contains(said, want.says) {
				t.Errorf("nobody says %q: %s", want.says, said)
			}
		})
	}
}
