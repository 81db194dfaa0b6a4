package demo

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/runners"
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
		{"as expected", gates.Verdict{Outcome: gates.Pass, Comparisons: timed}, "✓ stage2   PASS                 mission: 1805 µs → 231 µs", true},
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

// The runner's lines come in whatever pieces the pipe makes of them.
func TestFollower(t *testing.T) {
	const log = `{"level":"INFO","msg":"runner starts","name":"local"}
{"level":"INFO","msg":"performance: measuring, round 2 of 6, about 4s left","kernel":"sdpa_cpu"}
{"level":"INFO","msg":"job measured: yes","job":"pr-1-1-ab-1","kernel":"sdpa_cpu"}
{"level":"ERROR","msg":"measuring: panicked","kernel":"sdpa_cpu"}
panic: not JSON
`
	for _, size := range []int{1, 7, 100, len(log)} {
		var kept strings.Builder
		live := &tape{}
		f := &follower{log: &kept, live: live}
		for at := 0; at < len(log); at += size {
			if _, err := f.Write([]byte(log[at:min(at+size, len(log))])); err != nil {
				t.Fatal(err)
			}
		}
		if kept.String() != log {
			t.Errorf("in pieces of %d the log is\n%s", size, kept.String())
		}
		if len(live.seen) != 1 || live.seen[0] != (runners.Event{Gate: "performance", Text: "measuring, round 2 of 6, about 4s left"}) {
			t.Errorf("in pieces of %d the progress is %v", size, live.seen)
		}
	}
}

func TestSingleVariant(t *testing.T) {
	if _, err := singleVariant("name: x\n"); err == nil {
		t.Error("a manifest without variants was taken")
	}
}
