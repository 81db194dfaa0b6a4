package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// Runs that are off as a whole, as a copy that was placed badly is: the interval holds
// the truth as often as it says, with the offset that another copy showed, and without it
// the less often the more rounds there are.
func TestCoverageWithAnOffset(t *testing.T) {
	const truth = 1.1
	n := trials(400)
	expected := stats.RunBias{Scale: 0.001, Dof: 3}
	for _, c := range []struct {
		name   string
		offset float64 // standard deviation over runs
		rounds int
		floor  float64
	}{
		{"none", 0, 6, 0.95},
		{"as expected, 6 rounds", 0.001, 6, 0.94},
		{"as expected, 20 rounds", 0.001, 20, 0.94},
		{"twice as large, 20 rounds", 0.002, 20, 0.90},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(41, uint64(c.rounds)))
			noise := simulate.Noise{Between: 0.0005, Within: 0.001}
			draws, err := stats.NewResamplePlan(stats.MinResamples, 1)
			if err != nil {
				t.Fatal(err)
			}
			measure := func(truth float64) *stats.Distribution {
				d, err := draws.Quantile(noise.Ratios(rng, truth*math.Exp(c.offset*rng.NormFloat64()), c.rounds, 20), 0.5)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			covered, plain := 0, 0
			for range n {
				control, d := measure(1), measure(truth)
				if holds(d.With(expected.Seen(control)).Interval(0.95), truth) {
					covered++
				}
				if holds(d.Interval(0.95), truth) {
					plain++
				}
			}
			share, without := float64(covered)/float64(n), float64(plain)/float64(n)
			t.Logf("%d runs: the 95 %% interval covers %.1f %%, without the offset %.1f %%", n, 100*share, 100*without)
			if share < c.floor-slack(c.floor, n) {
				t.Errorf("covers %.3f, want at least %.3f", share, c.floor)
			}
			if c.offset >= 0.001 && c.rounds == 20 && without > 0.5 {
				t.Errorf("without the offset it covers %.3f: there is none in the data", without)
			}
		})
	}
}

func TestOffset(t *testing.T) {
	d := bootstrap(t, gpu.Ratios(rand.New(rand.NewPCG(42, 42)), 1.1, 10, 50), stats.Options{})
	if same := d.With(stats.RunBias{}); same != d {
		t.Error("an offset of nothing makes another distribution")
	}
	wide := d.With(stats.RunBias{Scale: 0.01, Dof: 4})
	if wide.Estimate != d.Estimate || wide.Lower(0.01) >= d.Lower(0.01) || wide.Upper(0.01) <= d.Upper(0.01) {
		t.Errorf("[%v, %v] is not wider than [%v, %v]", wide.Lower(0.01), wide.Upper(0.01), d.Lower(0.01), d.Upper(0.01))
	}
	if d.StdErr >= 0.01 || math.Abs(wide.StdErr-math.Hypot(d.StdErr, 0.01)) > 1e-12 {
		t.Errorf("the standard error %v becomes %v", d.StdErr, wide.StdErr)
	}
	// Nothing is decided within the offset by any number of rounds, and beyond it by fewer.
	if n := wide.RoundsNeeded(d.Estimate*1.01, 0.01, 0.8); n != stats.Never {
		t.Errorf("%d rounds would see through the offset", n)
	}
	if n := wide.RoundsNeeded(d.Estimate*1.2, 0.01, 0.8); n >= stats.Never {
		t.Error("a difference far beyond the offset is never seen")
	}
	// What the control shows weighs as one degree of freedom; its own noise is taken off.
	expected := stats.RunBias{Scale: 0.001, Dof: 3}
	quiet := func(level float64) *stats.Distribution {
		return bootstrap(t, simulate.Noise{Within: 1e-6}.Ratios(rand.New(rand.NewPCG(1, 1)), level, 6, 5), stats.Options{})
	}
	for _, c := range []struct{ level, want float64 }{
		{1, math.Sqrt(3.0/4) * 0.001},
		{math.Exp(0.019), math.Sqrt((3*1e-6 + 0.019*0.019) / 4)},
		{math.Exp(-0.019), math.Sqrt((3*1e-6 + 0.019*0.019) / 4)},
	} {
		if o := expected.Seen(quiet(c.level)); o.Dof != 4 || math.Abs(o.Scale/c.want-1) > 0.01 {
			t.Errorf("a control of %v makes %+v, want %v with 4", c.level, o, c.want)
		}
	}
	loud := bootstrap(t, simulate.Noise{Between: 0.05, Within: 0.01}.Ratios(rand.New(rand.NewPCG(2, 2)), 1.01, 6, 5), stats.Options{})
	if o := expected.Seen(loud); o.Scale > 0.03 {
		t.Errorf("noise of 5 %% between rounds is taken for an offset of %v", o.Scale)
	}
	// A control that is off by x widens the interval by more than x at every level that a
	// policy can ask for: half of 80 % at one look is the loosest.
	for _, alpha := range []float64{0.05, 0.025, 0.00375, 0.0001} {
		certain := quiet(1.2).With(expected.Seen(quiet(math.Exp(0.019))))
		if reach := math.Log(certain.Estimate / certain.Lower(alpha)); reach < 0.019 {
			t.Errorf("at %v a control that is off by 1.9 %% widens by %.4f", alpha, reach)
		}
	}
}

// Ratios of means and of quantiles, against the same by hand.
func TestRatios(t *testing.T) {
	a := stats.Sample{Rounds: [][]float64{{2, 4}, {6, 8}, {10, 12}}}
	b := stats.Sample{Rounds: [][]float64{{1, 1}, {2, 2}, {3, 3}}}
	draws, err := stats.NewResamplePlan(stats.DefaultResamples, 3)
	if err != nil {
		t.Fatal(err)
	}
	mean, err := draws.MeanRatio(a, b)
	if err != nil || !nearly(mean.Estimate, 3.5) || mean.Rounds != 3 {
		t.Errorf("%+v, %v", mean, err)
	}
	half, err := draws.QuantileRatio(a, b, 0.5)
	if err != nil || !nearly(half.Estimate, math.Sqrt(6*8)/2) {
		t.Errorf("%+v, %v", half, err)
	}
	same, err := draws.QuantileRatio(a, a, 0.9)
	if err != nil || same.Estimate != 1 || same.StdErr != 0 {
		t.Errorf("a sample over itself: %+v, %v", same, err)
	}
	for name, err := range map[string]error{
		"other rounds":  second(draws.MeanRatio(a, stats.Sample{Rounds: a.Rounds[:2]})),
		"one round":     second(draws.MeanRatio(stats.Sample{Rounds: a.Rounds[:1]}, stats.Sample{Rounds: b.Rounds[:1]})),
		"no time":       second(draws.MeanRatio(a, stats.Sample{Rounds: [][]float64{{1}, {0}, {1}}})),
		"not a level":   second(draws.QuantileRatio(a, b, 1)),
		"other rounds ": second(draws.QuantileRatio(a, stats.Sample{Rounds: a.Rounds[:2]}, 0.5)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Drawing the values of a round again, as well as the rounds, counts the noise within
// rounds twice: the intervals would be wider, and rounds wasted, for no better coverage.
func TestRoundsAloneAreNarrower(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 51))
	var rounds, both float64
	for range trials(48) {
		s := gpu.Ratios(rng, 1.1, 8, 30)
		rounds += bootstrap(t, s, stats.Options{Resamples: stats.MinResamples}).StdErr
		var medians []float64
		for range 300 {
			var drawn []float64
			for range s.Rounds {
				round := s.Rounds[rng.IntN(len(s.Rounds))]
				for range round {
					drawn = append(drawn, math.Log(round[rng.IntN(len(round))]))
				}
			}
			medians = append(medians, stats.Describe(drawn).P50)
		}
		both += stats.Describe(medians).Std * math.Sqrt(8.0/7)
	}
	t.Logf("the standard error is %.1f %% of the one that draws values too", 100*rounds/both)
	if rounds > 0.97*both {
		t.Errorf("the standard error is %.3f of the one that draws values too", rounds/both)
	}
}

// An offset without a scale or without degrees of freedom is none, and a distribution has one at most.
func TestNoOffset(t *testing.T) {
	draws, err := stats.NewResamplePlan(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := draws.Quantile(stats.Sample{Rounds: [][]float64{{1.1}, {1.2}, {1.3}, {1.25}}}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []stats.RunBias{{}, {Scale: 0.1}, {Dof: 3}, {Scale: -0.1, Dof: 3}, {Scale: math.NaN(), Dof: 3}} {
		if d.With(none) != d {
			t.Errorf("%+v widens", none)
		}
	}
	wide := d.With(stats.RunBias{Scale: 0.1, Dof: 3})
	if !(wide.StdErr > d.StdErr) || wide.With(stats.RunBias{Scale: 0.5, Dof: 3}) != wide {
		t.Errorf("%g becomes %g", d.StdErr, wide.StdErr)
	}
}

// Without any noise a threshold is proven on either side of the estimate, and at the estimate neither p-value is lost.
func TestWithoutAnyNoise(t *testing.T) {
	draws, err := stats.NewResamplePlan(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := draws.Quantile(stats.Sample{Rounds: [][]float64{{1.25}, {1.25}, {1.25}}}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for threshold, want := range map[float64][2]float64{1.2: {0, 1}, 1.3: {1, 0}} {
		if above, below := d.PAbove(threshold), d.PBelow(threshold); above != want[0] || below != want[1] {
			t.Errorf("%g: %g and %g", threshold, above, below)
		}
	}
	if above, below := d.PAbove(1.25), d.PBelow(1.25); !(above >= 0 && above <= 1) || !(below >= 0 && below <= 1) {
		t.Errorf("at the estimate: %g and %g", above, below)
	}
	if lower, upper := d.Bounds(0.025); lower != 1.25 || upper != 1.25 {
		t.Errorf("from %g to %g", lower, upper)
	}
}
