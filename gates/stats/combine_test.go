package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func lognormal(rng *rand.Rand, rounds, values int, of func() float64) Sample {
	var s Sample
	for range rounds {
		shared := 0.01 * rng.NormFloat64()
		var round []float64
		for range values {
			round = append(round, of()*math.Exp(shared+0.02*rng.NormFloat64()))
		}
		s.Rounds = append(s.Rounds, round)
	}
	return s
}

// A combination of one figure is what the figure's own bootstrap gives.
func TestCombineOfOneFigure(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := lognormal(rng, 8, 20, func() float64 { return 50 })
	b := lognormal(rng, 8, 20, func() float64 { return 40 })
	plan, err := NewResamplePlan(MinResamples, 7)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want *Distribution) {
		t.Helper()
		gotLow, gotHigh := got.Bounds(0.025)
		wantLow, wantHigh := want.Bounds(0.025)
		for _, pair := range [][2]float64{{got.Estimate, want.Estimate}, {gotLow, wantLow}, {gotHigh, wantHigh}} {
			if math.Abs(pair[0]/pair[1]-1) > 1e-9 {
				t.Errorf("%s: %v [%v, %v], want %v [%v, %v]", what, got.Estimate, gotLow, gotHigh, want.Estimate, wantLow, wantHigh)
				return
			}
		}
	}
	median, err := QuantileOf(a, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Combine([]Figure{median}, func(v []float64) float64 { return v[0] })
	if err != nil {
		t.Fatal(err)
	}
	want, err := plan.Quantile(a, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	near("median", got, want)

	meanA, errA := MeanOf(a)
	meanB, errB := MeanOf(b)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	got, err = plan.Combine([]Figure{meanA, meanB}, func(v []float64) float64 { return v[0] / v[1] })
	if err != nil {
		t.Fatal(err)
	}
	want, err = plan.MeanRatio(a, b)
	if err != nil {
		t.Fatal(err)
	}
	near("ratio of means", got, want)
}

// Samples that are not of the same rounds cannot be combined, and neither can what is no positive number.
func TestCombineRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	plan, err := NewResamplePlan(MinResamples, 7)
	if err != nil {
		t.Fatal(err)
	}
	six, _ := MeanOf(lognormal(rng, 6, 4, func() float64 { return 1 }))
	seven, _ := MeanOf(lognormal(rng, 7, 4, func() float64 { return 1 }))
	if _, err := plan.Combine([]Figure{six, seven}, func(v []float64) float64 { return v[0] / v[1] }); err == nil {
		t.Error("combined samples of different rounds")
	}
	if _, err := plan.Combine([]Figure{six}, func(v []float64) float64 { return -v[0] }); err == nil {
		t.Error("combined to a negative figure")
	}
	if _, err := plan.Combine(nil, nil); err == nil {
		t.Error("combined nothing")
	}
	if _, err := QuantileOf(Sample{Rounds: [][]float64{{1}, {}}}, 0.5); err == nil {
		t.Error("a round without values has a quantile")
	}
	if _, err := MeanOf(Sample{Rounds: [][]float64{{1}}}); err == nil {
		t.Error("one round has a distribution")
	}
	if _, err := QuantileOf(Sample{Rounds: [][]float64{{1}, {2}}}, 1); err == nil {
		t.Error("1 is no quantile")
	}
}
