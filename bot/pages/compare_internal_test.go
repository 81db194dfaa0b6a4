package pages

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// TestSignsAreTheComments checks that a page and a comment show the same sign for a run.
func TestSignsAreTheComments(t *testing.T) {
	for _, r := range []gates.Reason{gates.ReasonBuild, gates.ReasonResources, gates.ReasonCorrectness, gates.ReasonTooSlow,
		gates.ReasonRegression, gates.ReasonInconclusive, gates.ReasonSuspicious, gates.ReasonProfile} {
		if wrong := report.Sign(gates.Defer, r) == "❌"; wrong != (outcomeOf(gates.Defer, r).Class == "fail") {
			t.Errorf("%s: %v on the page, and %s in the comment", r, outcomeOf(gates.Defer, r), report.Sign(gates.Defer, r))
		}
	}
}

func TestSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		times []float64
		want  []int
	}{
		"none":         {nil, nil},
		"one":          {[]float64{5}, nil},
		"flat":         {[]float64{20, 20.1, 19.9, 20, 20.2, 19.8}, nil},
		"down":         {[]float64{20, 20.1, 19.9, 15, 15.1, 14.9}, []int{3}},
		"up":           {[]float64{15, 15.1, 14.9, 20, 20.1, 19.9}, []int{3}},
		"one outlier":  {[]float64{20, 20.1, 26, 20, 19.9, 20}, nil},
		"two":          {[]float64{20, 20.1, 20, 15, 15.1, 15, 10, 10, 10}, []int{3, 6}},
		"at the end":   {[]float64{20, 20.1, 20, 15}, []int{3}},
		"less than 3%": {[]float64{20, 20, 20, 19.6, 19.6, 19.6}, nil},
	} {
		var points []Past
		for _, v := range tt.times {
			points = append(points, Past{P50: v})
		}
		if diff := cmp.Diff(tt.want, steps(points)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestGateThatWasNotJudged checks that a gate with evidence that nobody judged is distinguished
// from a gate that did not run.
func TestGateThatWasNotJudged(t *testing.T) {
	for seconds, want := range map[float64]string{0: "not run", 11.1: "not judged"} {
		if got := stepSign(Step{GateResult: gates.GateResult{Gate: gates.GatePerformance, Status: gates.NotRun}, Seconds: seconds}); got.Word != want {
			t.Errorf("with %v seconds of evidence: %q", seconds, got.Word)
		}
	}
}

func TestWords(t *testing.T) {
	if got := KernelPath("a/b", "x (k/x)?#%"); got != "/kernels/a/b/x%20%28k/x%29%3F%23%25" {
		t.Error(got)
	}
}

// TestSpread checks that the spread is that of the runs since the last permanent change.
func TestSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		times []float64
		want  string
	}{
		"none":    {nil, ""},
		"one":     {[]float64{5}, ""},
		"flat":    {[]float64{19.8, 20.2, 20}, "±1.0\u00a0% over 3 runs"},
		"faster":  {[]float64{40, 40.1, 39.9, 19.8, 20.2, 20}, "±1.0\u00a0% over 3 runs"},
		"at once": {[]float64{20, 20.1, 20, 15}, ""},
	} {
		row := KernelRow{}
		if row.Spread, row.Runs = spread(tt.times); row.Around() != tt.want {
			t.Errorf("%s: %q, want %q", name, row.Around(), tt.want)
		}
	}
}
