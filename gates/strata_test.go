package gates

import (
	"math"
	"strings"
	"testing"
)

// inKinds makes a series of blocks whose ratio depends on the kind of input.
func inKinds(ratios []float64, blocks int, jitter func() float64) Series {
	s := Series{Shape: "mission", Batch: 1, Verified: 1, Worst: &Errors{}, Distributions: []string{"normal", "uniform", "large"}[:len(ratios)]}
	var order []string
	for k := range blocks {
		order = append(order, "bcaacb")
		for _, side := range "bcaacb" {
			ns := 100_000 * jitter()
			if side == SideCandidate {
				ns /= ratios[k%len(ratios)]
			}
			s.Nanos = append(s.Nanos, ns)
		}
	}
	s.Order = strings.Join(order, " ")
	return s
}

// Every kind of input counts the same: a kernel that is faster on two of three and
// much slower on the third is judged by all of them, and the interval is as narrow
// as the noise, not as wide as the kinds are apart.
func TestKindsOfInput(t *testing.T) {
	r := newRand(7, 1)
	jitter := func() float64 { return math.Exp(0.003 * r.NormFloat64()) }
	e := quiet(1).measured(newRand(1, 1), 6)
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].Series = []Series{inKinds([]float64{1.2, 1.2, 0.6}, 21, jitter)}
	}
	v := judged(t, `{guard: {shapes: [mission], speedup: ">= -2%"}, pairs: 20}`, e)
	if v.Outcome != Defer || v.Reason != ReasonRegression {
		t.Fatalf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	got := v.Comparisons[0].Speedup
	if want := math.Cbrt(1.2*1.2*0.6) - 1; math.Abs(got.Value-want) > 0.005 || *got.Upper-*got.Lower > 0.02 {
		t.Errorf("speedup %s, want about %.3f", got, want)
	}
	details := ""
	for _, g := range v.Gates {
		details += strings.Join(detailTexts(g), "\n")
	}
	if !strings.Contains(details, "mission by inputs: normal +") || !strings.Contains(details, "large −4") || v.Measuring.Inputs != 3 {
		t.Errorf("the kinds are not told apart: %s", details)
	}
}

// Where all kinds are alike, telling them apart changes nothing but the noise.
func TestKindsThatAreAlike(t *testing.T) {
	r := newRand(9, 1)
	jitter := func() float64 { return math.Exp(0.003 * r.NormFloat64()) }
	e := quiet(1).measured(newRand(1, 1), 6)
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].Series = []Series{inKinds([]float64{1.15, 1.15, 1.15}, 21, jitter)}
	}
	apart := judged(t, gate10, e)
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].Series[0].Distributions = nil
	}
	together := judged(t, gate10, e)
	if a, b := apart.Comparisons[0].Speedup, together.Comparisons[0].Speedup; math.Abs(a.Value-b.Value) > 0.002 || apart.Outcome != Pass || together.Outcome != Pass {
		t.Errorf("apart %s, together %s", a, b)
	}
}
