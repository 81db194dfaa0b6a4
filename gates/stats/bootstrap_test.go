package stats_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

var gpu = simulate.Noise{Between: 0.01, Within: 0.02, Dof: 3}

func bootstrap(t testing.TB, s stats.Sample, opt stats.Options) *stats.Distribution {
	t.Helper()
	d, err := stats.Bootstrap(s, opt)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// resampleByHand does what Bootstrap stands for: it lists the values of every round
// drawn, and sorts them.
func resampleByHand(s stats.Sample, q float64, resamples int, rng *rand.Rand) []float64 {
	quantile := func(values []float64) float64 {
		slices.Sort(values)
		h := float64(len(values)-1) * q
		i := int(h)
		return values[i] + (h-float64(i))*(values[min(i+1, len(values)-1)]-values[i])
	}
	var logs [][]float64
	var all []float64
	for _, round := range s.Rounds {
		var l []float64
		for _, v := range round {
			l = append(l, math.Log(v))
		}
		logs = append(logs, l)
		all = append(all, l...)
	}
	centre := quantile(all)
	offsets := make([]float64, resamples)
	var drawn []float64
	for i := range offsets {
		drawn = drawn[:0]
		for range logs {
			drawn = append(drawn, logs[rng.IntN(len(logs))]...)
		}
		offsets[i] = quantile(drawn) - centre
	}
	slices.Sort(offsets)
	return offsets
}

func TestBootstrapAgreesWithDrawingEveryValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	quantised := gpu.Ratios(rng, 1, 8, 40)
	for _, round := range quantised.Rounds {
		for i, v := range round {
			round[i] = math.Round(v*200) / 200
		}
	}
	uneven := stats.Sample{}
	for _, pairs := range []int{5, 60, 20, 7, 33, 12, 41} {
		uneven.Rounds = append(uneven.Rounds, gpu.Ratios(rng, 1, 1, pairs).Rounds...)
	}
	skewed := simulate.Noise{Between: 0.01, Within: 0.3}.Ratios(rng, 1, 9, 21)
	for _, round := range skewed.Rounds {
		for i, v := range round {
			round[i] = 1 + math.Pow(math.Abs(math.Log(v)), 2)
		}
	}
	cases := []struct {
		name   string
		sample stats.Sample
		q      float64
	}{
		{"5×10", gpu.Ratios(rng, 1.1, 5, 10), 0.5},
		{"5×10, rounds alike", simulate.Noise{Within: 0.02, Dof: 3}.Ratios(rng, 1.1, 5, 10), 0.5},
		{"5×11", gpu.Ratios(rng, 1.1, 5, 11), 0.5},
		{"3×4", gpu.Ratios(rng, 1.1, 3, 4), 0.5},
		{"10×1", gpu.Ratios(rng, 1.1, 10, 1), 0.5},
		{"6×30, rounds far apart", simulate.Noise{Between: 0.05, Within: 0.002}.Ratios(rng, 1, 6, 30), 0.5},
		{"12×30", gpu.Ratios(rng, 1.1, 12, 30), 0.5},
		{"20×20", gpu.Ratios(rng, 1.1, 20, 20), 0.5},
		{"uneven rounds", uneven, 0.5},
		{"timer ticks", quantised, 0.5},
		{"skewed", skewed, 0.5},
		{"9×30, 90th percentile", gpu.Ratios(rng, 1, 9, 30), 0.9},
		{"9×30, 10th percentile", gpu.Ratios(rng, 1, 9, 30), 0.1},
	}
	resamples, tolerance := 10_000, 0.04
	if raceEnabled {
		resamples, tolerance = 2_000, 0.08
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fast := bootstrap(t, c.sample, stats.Options{Quantile: c.q, Resamples: resamples, Seed: 2}).Offsets()
			slow := resampleByHand(c.sample, c.q, resamples, rng)

			sdFast, sdSlow := stats.Describe(fast).Std, stats.Describe(slow).Std
			at := func(v []float64, q float64) float64 { return v[int(q*float64(len(v)))] }
			t.Logf("stderr %.5f by hand %.5f; 2.5 %% %+.5f by hand %+.5f; 97.5 %% %+.5f by hand %+.5f",
				sdFast, sdSlow, at(fast, 0.025), at(slow, 0.025), at(fast, 0.975), at(slow, 0.975))
			if math.Abs(sdFast/sdSlow-1) > tolerance {
				t.Errorf("standard error %v, by hand %v", sdFast, sdSlow)
			}
			// Few values make few distinct quantiles, and a level may fall on
			// the step between two of them: a hair's breadth of level is allowed.
			slack := tolerance * (at(slow, 0.975) - at(slow, 0.025))
			for _, q := range []float64{0.025, 0.975} {
				if v := at(slow, q); v < at(fast, q-0.004)-slack || v > at(fast, q+0.004)+slack {
					t.Errorf("quantile %v of the resamples is %v, by hand %v", q, at(fast, q), v)
				}
			}
		})
	}
}

func TestBootstrapIsReproducible(t *testing.T) {
	s := gpu.Ratios(rand.New(rand.NewPCG(3, 3)), 1.1, 7, 20)
	a := bootstrap(t, s, stats.Options{Seed: 5})
	b := bootstrap(t, s, stats.Options{Seed: 5})
	if !slices.Equal(a.Offsets(), b.Offsets()) || a.StdErr != b.StdErr || a.Estimate != b.Estimate {
		t.Error("the same sample and seed gave two distributions")
	}
	if c := bootstrap(t, s, stats.Options{Seed: 6}); slices.Equal(a.Offsets(), c.Offsets()) {
		t.Error("another seed gave the same resamples")
	}
	if len(a.Offsets()) != stats.DefaultResamples || a.Rounds != 7 {
		t.Errorf("%d resamples of %d rounds", len(a.Offsets()), a.Rounds)
	}
}

func TestEstimate(t *testing.T) {
	cases := []struct {
		name   string
		rounds [][]float64
		q      float64
		want   float64
	}{
		{"odd count is the middle value", [][]float64{{1.3, 1.1}, {1.2}}, 0.5, 1.2},
		{"even count is the geometric middle", [][]float64{{1, 9}, {4, 2}}, 0.5, math.Sqrt(8)},
		{"larger rounds weigh more", [][]float64{{1, 1, 1, 1, 1}, {2}}, 0.5, 1},
		{"upper quartile", [][]float64{{1, 2, 3}, {4, 5}}, 0.75, 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := bootstrap(t, stats.Sample{Rounds: c.rounds}, stats.Options{Quantile: c.q})
			if !nearly(d.Estimate, c.want) {
				t.Errorf("estimate %v, want %v", d.Estimate, c.want)
			}
		})
	}
}

func TestEstimateInvertsWithTheRatio(t *testing.T) {
	s := gpu.Ratios(rand.New(rand.NewPCG(4, 4)), 1.1, 6, 10)
	inverse := stats.Sample{}
	for _, round := range s.Rounds {
		var flipped []float64
		for _, v := range round {
			flipped = append(flipped, 1/v)
		}
		inverse.Rounds = append(inverse.Rounds, flipped)
	}
	a, b := bootstrap(t, s, stats.Options{}), bootstrap(t, inverse, stats.Options{})
	if !nearly(a.Estimate*b.Estimate, 1) {
		t.Errorf("estimates %v and %v are not inverse", a.Estimate, b.Estimate)
	}
}

func TestNoNoise(t *testing.T) {
	s := stats.Sample{Rounds: [][]float64{{1.1, 1.1}, {1.1, 1.1, 1.1}, {1.1}}}
	d := bootstrap(t, s, stats.Options{})
	if d.Estimate != 1.1 || d.StdErr != 0 {
		t.Errorf("estimate %v ± %v", d.Estimate, d.StdErr)
	}
	for _, alpha := range []float64{1e-300, 1e-6, 0.05, 0.5} {
		if d.Lower(alpha) != 1.1 || d.Upper(alpha) != 1.1 {
			t.Errorf("alpha %v: [%v, %v]", alpha, d.Lower(alpha), d.Upper(alpha))
		}
	}
	if below, above := d.PBelow(1.1), d.PAbove(1.1); below != 0 || above != 0 {
		t.Errorf("p at the value itself: %v and %v, want 0 as the bounds equal it", below, above)
	}
	if p := d.PAbove(1.2); p != 1 {
		t.Errorf("PAbove(1.2) = %v", p)
	}
	if d.Detectable(0.05, 0.8) != 0 || d.RoundsNeeded(1.2, 0.05, 0.8) != 2 || d.RoundsNeeded(1.1, 0.05, 0.8) != stats.Never {
		t.Errorf("detectable %v, rounds %d and %d", d.Detectable(0.05, 0.8), d.RoundsNeeded(1.2, 0.05, 0.8), d.RoundsNeeded(1.1, 0.05, 0.8))
	}
}

func TestBootstrapRefuses(t *testing.T) {
	good := [][]float64{{1, 2}, {3}}
	cases := []struct {
		name   string
		rounds [][]float64
		opt    stats.Options
		want   string
	}{
		{"no rounds", nil, stats.Options{}, "needs at least 2 rounds"},
		{"one round", good[:1], stats.Options{}, "needs at least 2 rounds"},
		{"an empty round", [][]float64{{1}, {}}, stats.Options{}, "round 2 is empty"},
		{"zero", [][]float64{{1}, {2, 0}}, stats.Options{}, "round 2, value 2 is 0"},
		{"negative", [][]float64{{-1}, {2}}, stats.Options{}, "round 1, value 1 is -1"},
		{"NaN", [][]float64{{1}, {math.NaN()}}, stats.Options{}, "NaN"},
		{"infinite", [][]float64{{1}, {math.Inf(1)}}, stats.Options{}, "+Inf"},
		{"quantile above 1", good, stats.Options{Quantile: 1.5}, "quantile 1.5"},
		{"quantile NaN", good, stats.Options{Quantile: math.NaN()}, "quantile NaN"},
		{"few resamples", good, stats.Options{Resamples: 10}, "at least 1000"},
		{"negative resamples", good, stats.Options{Resamples: -1}, "at least 1000"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := stats.Bootstrap(stats.Sample{Rounds: c.rounds}, c.opt)
			if err == nil || d != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", d, err, c.want)
			}
			if tooFew := len(c.rounds) < 2; errors.Is(err, stats.ErrTooFewRounds) != tooFew {
				t.Errorf("errors.Is(%v, ErrTooFewRounds) should be %v", err, tooFew)
			}
		})
	}
}

// nearly allows for rounding only.
func nearly(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b))
}
