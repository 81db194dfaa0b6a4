package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// TestOverview checks the sentence about many shapes, in the report of a verdict that does not show all of them.
func TestOverview(t *testing.T) {
	v := &gates.Verdict{Kernel: "scale", Outcome: gates.Defer, Reason: gates.ReasonTooSlow}
	for i := range 40 {
		value := 0.5 + float64(i)/100
		lower, upper := value-0.01, value+0.01
		c := gates.Comparison{Shape: fmt.Sprintf("n%d", i), Role: gates.RoleTarget, Status: gates.Passed, Goal: "speedup >= +10% on all", Baseline: &stats.Summary{P50: 10}, Candidate: &stats.Summary{P50: 10 / (1 + value)},
			Speedup: gates.Estimate{Value: value, Lower: &lower, Upper: &upper}}
		switch i {
		case 7:
			c.Status, c.Speedup = gates.Failed, gates.Estimate{Value: 0.02, Lower: new(0.01), Upper: new(0.03)}
		case 8:
			c.Status, c.Speedup = gates.Open, gates.Estimate{Value: 0.1, Lower: new(0.05), Upper: new(0.15)}
		}
		v.Comparisons = append(v.Comparisons, c)
	}
	text := strings.ReplaceAll(Markdown(v, Options{Part: Above}), "\u00a0", " ")
	if want := "38 of 40 shapes meet their goals, 1 misses it, 1 is undecided. Geometric mean +65.8 %; tightest on n7: +2.0 % (≥ +10 %)."; !strings.Contains(text, want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
	if OverviewOf(v.Comparisons[:1]) != nil || OverviewOf(nil) != nil {
		t.Error("one shape needs no overview")
	}
}
