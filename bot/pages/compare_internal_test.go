package pages

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A page and a comment about one run show the same.
func TestSignsAreTheComments(t *testing.T) {
	for _, r := range []gates.Reason{gates.ReasonBuild, gates.ReasonResources, gates.ReasonCorrectness, gates.ReasonTooSlow,
		gates.ReasonRegression, gates.ReasonInconclusive, gates.ReasonSuspicious, gates.ReasonProfile} {
		if wrong := report.Sign(gates.Defer, r) == "❌"; wrong != (outcomeOf(gates.Defer, r).Class == "fail") {
			t.Errorf("%s: %v on the page, and %s in the comment", r, outcomeOf(gates.Defer, r), report.Sign(gates.Defer, r))
		}
	}
}

// rounds draws medians of rounds around a time.
func rounds(r *rand.Rand, n int, middle, noise float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = middle * math.Exp(noise*r.NormFloat64())
	}
	return list
}

// What is called significant is so by chance in one of twenty, whatever the noise,
// and a real difference is seen with the right sign.
func TestWeigh(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	alarms, covered := 0, 0
	for range trials {
		d := Difference{Kind: "time", Class: "none"}
		d.weigh(rounds(r, 6, 20, 0.01), rounds(r, 12, 20, 0.03))
		if d.Significant() {
			alarms++
		}
		if *d.Lower <= 0 && *d.Upper >= 0 {
			covered++
		}
	}
	if share := float64(alarms) / trials; share < 0.03 || share > 0.07 {
		t.Errorf("%.1f %% false alarms", 100*share)
	}
	if alarms+covered != trials {
		t.Errorf("the interval and the chance disagree: %d + %d of %d", alarms, covered, trials)
	}
	for _, tt := range []struct {
		b    float64
		want string
	}{{18, "pass"}, {22, "fail"}} {
		a, b := 20.0, tt.b
		d := Difference{Kind: "time", Class: "none", A: &a, B: &b}
		d.weigh(rounds(r, 6, a, 0.01), rounds(r, 6, b, 0.01))
		if d.Class != tt.want || math.Abs(*d.Ratio-(b/a-1)) > 0.03 || *d.P > 1e-3 {
			t.Errorf("20 against %v: %+v", tt.b, d)
		}
	}
	for name, few := range map[string][]float64{"none": nil, "one": {3}, "no noise": {3, 3, 3}, "zero": {0, 0}} {
		d := Difference{Class: "none"}
		if d.weigh(few, few); d.P != nil || d.Significant() {
			t.Errorf("%s: %+v", name, d)
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

func TestWords(t *testing.T) {
	for v, want := range map[float64]string{0.1: "+10.0 %", -0.0251: "−2.5 %", 0: "0 %", 0.0001: "0 %"} {
		if got := signed(v); got != want {
			t.Errorf("signed(%v) = %q", v, got)
		}
	}
	for v, want := range map[float64]string{0: "–", 8.541: "8.541 µs", 23280: "23.28 ms", 2.5e6: "2.5 s", math.NaN(): "–"} {
		if got := micros(v); got != want {
			t.Errorf("micros(%v) = %q", v, got)
		}
	}
	if got := kernelPath("a/b", "x (k/x)?#%"); got != "/kernels/a/b/x%20%28k/x%29%3F%23%25" {
		t.Error(got)
	}
}
