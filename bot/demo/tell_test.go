package demo

import (
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestSummary(t *testing.T) {
	timed := []gates.Comparison{
		{Role: "guard", Shape: "small", Baseline: &stats.Summary{P50: 1}, Candidate: &stats.Summary{P50: 2}},
		{Role: "target", Shape: "mission", Baseline: &stats.Summary{P50: 1804.6}, Candidate: &stats.Summary{P50: 231.2}},
	}
	for _, tt := range []struct {
		name     string
		verdict  gates.Verdict
		want     string
		expected bool
	}{
		{"as expected", gates.Verdict{Outcome: gates.Pass, Comparisons: timed}, "✓ stage2   PASS                 mission: 1.80\u00a0ms → 231\u00a0µs", true},
		{"without times", gates.Verdict{Outcome: gates.Pass}, "✓ stage2   PASS", true},
		{"otherwise", gates.Verdict{Outcome: gates.Defer, Reason: gates.ReasonTooSlow, Comparisons: timed}, "✗ stage2   DEFER (too-slow)     expected PASS", false},
		{"another reason", gates.Verdict{Outcome: gates.Pass, Reason: gates.ReasonTooSlow}, "✗ stage2   PASS (too-slow)      expected PASS", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, expected := summary(stage{name: "stage2", outcome: gates.Pass}, &tt.verdict)
			if got != tt.want || expected != tt.expected {
				t.Errorf("got %q, %v", got, expected)
			}
		})
	}
}

func TestSingleVariant(t *testing.T) {
	if _, err := singleVariant("name: x\n"); err == nil {
		t.Error("a manifest without variants was taken")
	}
}
