package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func distributionOf(t *testing.T, rounds ...[]float64) *Distribution {
	t.Helper()
	draws, err := NewResamplePlan(MinResamples, 1)
	if err != nil {
		t.Fatal(err)
	}
	d, err := draws.Quantile(Sample{rounds}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A table holds every resample that was drawn, those that came out alike together.
func TestTableHoldsEveryResample(t *testing.T) {
	for rounds := 2; rounds <= 12; rounds++ {
		d, err := NewResamplePlan(MinResamples, 7)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		rng := rand.New(rand.NewPCG(7, stream))
		for range MinResamples {
			row := make([]float64, rounds)
			for range rounds {
				row[rng.IntN(rounds)]++
			}
			want[fmt.Sprint(row)]++
		}
		table := d.of(rounds)
		got := map[string]int{}
		for i, times := range table.times {
			got[fmt.Sprint(table.row(i))] += int(times)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d rounds: %d kinds of resamples, want %d", rounds, len(got), len(want))
		}
		if rounds <= fewRounds && len(table.times) != len(want) {
			t.Errorf("%d rounds: %d rows for %d kinds", rounds, len(table.times), len(want))
		}
		if d.of(rounds) != table {
			t.Error("a table is drawn twice")
		}
	}
}

// A threshold at or below zero lies below every ratio, and NaN proves nothing.
func TestThresholdsThatNoRatioReaches(t *testing.T) {
	for _, d := range []*Distribution{distributionOf(t, []float64{1, 1.1}, []float64{1.05, 1.2}), distributionOf(t, []float64{1}, []float64{1})} {
		for _, c := range []struct{ threshold, above, below float64 }{
			{0, 0, 1}, {-0.5, 0, 1}, {-3, 0, 1}, {math.Inf(-1), 0, 1}, {math.NaN(), 1, 1}, {math.Inf(1), 1, 0},
		} {
			if above, below := d.PAbove(c.threshold), d.PBelow(c.threshold); above != c.above || below != c.below {
				t.Errorf("%v: above %v, below %v", c.threshold, above, below)
			}
		}
	}
}

// Arguments that make no sense give answers that allow no claim.
func TestSenselessArguments(t *testing.T) {
	d := distributionOf(t, []float64{1, 1.1}, []float64{1.05, 1.2}, []float64{1.02, 1.1})
	for _, c := range []struct {
		alpha, power float64
		sense        bool
	}{
		{0.05, 0.8, true}, {0.49, 0.8, true}, {0.5, 0.8, false}, {0.6, 0.8, false}, {0, 0.8, false}, {1, 0.8, false}, {-1, 0.8, false},
		{0.05, 0, false}, {0.05, 1, false}, {math.NaN(), 0.8, false}, {0.05, math.NaN(), false}, {0.05, 0.01, true},
	} {
		if got := d.Detectable(c.alpha, c.power); math.IsInf(got, 1) == c.sense {
			t.Errorf("alpha %v, power %v: detectable is %v", c.alpha, c.power, got)
		}
		if got := d.RoundsNeeded(1.5, c.alpha, c.power); (got == Never) == c.sense {
			t.Errorf("alpha %v, power %v: %d rounds", c.alpha, c.power, got)
		}
	}
	for _, threshold := range []float64{0, -1, math.NaN(), d.Estimate} {
		if got := d.RoundsNeeded(threshold, 0.05, 0.8); got != Never {
			t.Errorf("threshold %v: %d rounds", threshold, got)
		}
	}
	for _, alpha := range []float64{0, 1, -1, 2, math.NaN()} {
		if lower, upper := d.Bounds(alpha); lower != 0 || !math.IsInf(upper, 1) {
			t.Errorf("alpha %v: [%v, %v]", alpha, lower, upper)
		}
	}
	// A power below one half asks for no margin, and does not take one away.
	if low, half := d.Detectable(0.05, 0.1), d.Detectable(0.05, 0.5); math.Abs(low-half) > 1e-12 {
		t.Errorf("detectable is %v with a power of 10 %%, %v with 50 %%", low, half)
	}
	if low, half := d.RoundsNeeded(1.3, 0.05, 0.1), d.RoundsNeeded(1.3, 0.05, 0.5); low != half {
		t.Errorf("%d rounds with a power of 10 %%, %d with 50 %%", low, half)
	}
	if high, half := d.Detectable(0.05, 0.9), d.Detectable(0.05, 0.5); high <= half {
		t.Errorf("detectable is %v with a power of 90 %%, %v with 50 %%", high, half)
	}
}

// The number of rounds is the smallest that is enough.
func TestRoundsNeededIsTheLeast(t *testing.T) {
	d := distributionOf(t, []float64{1, 1.1}, []float64{1.05, 1.2}, []float64{1.02, 1.1}, []float64{1.08, 1.12})
	last := 2
	for distance := 0.5; distance > 0.001; distance *= 0.8 {
		n := d.RoundsNeeded(d.Estimate*math.Exp(distance), 0.05, 0.8)
		if other := d.RoundsNeeded(d.Estimate*math.Exp(-distance), 0.05, 0.8); other != n {
			t.Errorf("%v: %d rounds upwards, %d downwards", distance, n, other)
		}
		if n < last || n == Never {
			t.Errorf("%v: %d rounds after %d", distance, n, last)
		}
		last = n
	}
	if last < 1000 {
		t.Errorf("0.1 %% takes %d rounds", last)
	}
	still := distributionOf(t, []float64{1}, []float64{1})
	if n := still.RoundsNeeded(1.0001, 0.05, 0.8); n != 2 {
		t.Errorf("without noise it takes %d rounds", n)
	}
	if n := still.With(RunBias{Scale: 0.01, Dof: 3}).RoundsNeeded(1.001, 0.05, 0.8); n != Never {
		t.Errorf("an offset that rounds do not take away: %d rounds", n)
	}
}

// Means that cannot be added up are an error, whichever side they are on.
func TestMeansTooLarge(t *testing.T) {
	draws, err := NewResamplePlan(MinResamples, 1)
	if err != nil {
		t.Fatal(err)
	}
	huge := Sample{[][]float64{{math.MaxFloat64, math.MaxFloat64}, {math.MaxFloat64}}}
	small := Sample{[][]float64{{1, 2}, {1}}}
	for _, c := range []struct {
		a, b Sample
		fine bool
	}{{small, small, true}, {huge, small, false}, {small, huge, false}, {huge, huge, false}} {
		if d, err := draws.MeanRatio(c.a, c.b); (err == nil) != c.fine {
			t.Errorf("%v, %v", d, err)
		}
	}
}

// A sample needs two rounds, each with values that are positive and finite.
func TestSamplesThatAreRefused(t *testing.T) {
	draws, err := NewResamplePlan(MinResamples, 1)
	if err != nil {
		t.Fatal(err)
	}
	good := Sample{[][]float64{{1}, {2}}}
	for name, s := range map[string]Sample{
		"one round": {[][]float64{{1, 2}}}, "no round": {}, "an empty round": {[][]float64{{1}, {}}},
		"zero": {[][]float64{{1}, {0}}}, "negative": {[][]float64{{1}, {-1}}}, "infinite": {[][]float64{{1}, {math.Inf(1)}}}, "NaN": {[][]float64{{math.NaN()}, {1}}},
	} {
		if _, err := draws.Quantile(s, 0.5); err == nil {
			t.Errorf("%s: a quantile", name)
		}
		for _, pair := range [][2]Sample{{s, good}, {good, s}} {
			if _, err := draws.MeanRatio(pair[0], pair[1]); err == nil {
				t.Errorf("%s: a ratio of means", name)
			}
			if _, err := draws.QuantileRatio(pair[0], pair[1], 0.9); err == nil {
				t.Errorf("%s: a ratio of quantiles", name)
			}
		}
	}
	for _, q := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, err := draws.Quantile(good, q); err == nil {
			t.Errorf("the quantile %v", q)
		}
		if _, err := draws.QuantileRatio(good, good, q); err == nil {
			t.Errorf("the ratio of quantiles %v", q)
		}
	}
	if _, err := NewResamplePlan(MinResamples-1, 1); err == nil {
		t.Error("too few resamples")
	}
}

// Degrees of freedom beyond which the normal distribution is used make no step.
func TestNearlyNormal(t *testing.T) {
	for _, p := range []float64{0.001, 0.025, 0.3} {
		at, beyond := student(nearlyNormal), student(nearlyNormal+1)
		if a, b := at.quantile(p), beyond.quantile(p); math.Abs(a/b-1) > 0.005 || a >= b {
			t.Errorf("the quantile of %v steps from %v to %v", p, a, b)
		}
		x := at.quantile(p)
		if a, b := at.cdf(x), beyond.cdf(x); math.Abs(a-p) > 1e-6 || math.Abs(b/a-1) > 0.05 || a == b {
			t.Errorf("the share below %v steps from %v to %v", x, a, b)
		}
	}
}

// The resampler finds what a search through all values finds.
func TestResamplerFindsTheQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 300 {
		rounds := 2 + rng.IntN(24)
		s := Sample{}
		for range rounds {
			var values []float64
			for range 1 + rng.IntN(6) {
				values = append(values, 1+float64(rng.IntN(8)))
			}
			s.Rounds = append(s.Rounds, values)
		}
		q := []float64{0.05, 0.5, 0.9, 0.99}[n%4]
		all, logs, centre := s.logs(q)
		r := newResampler(s, all, logs)
		weights := make([]float64, rounds)
		for range rounds {
			weights[rng.IntN(rounds)]++
		}
		var drawn []float64
		for i, w := range weights {
			for range int(w) {
				for _, v := range s.Rounds[i] {
					drawn = append(drawn, math.Log(v)-centre)
				}
			}
		}
		sortFloats(drawn)
		i, frac := position(len(drawn), q)
		want := drawn[i]
		if frac > 0 {
			want += frac * (drawn[i+1] - drawn[i])
		}
		if got := r.quantile(weights, q); math.Abs(got-want) > 1e-12 {
			t.Fatalf("sample %d, %d rounds, quantile %v: %v, want %v", n, rounds, q, got, want)
		}
	}
}
