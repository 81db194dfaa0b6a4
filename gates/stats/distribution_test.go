package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

func samples() map[string]stats.Sample {
	rng := rand.New(rand.NewPCG(11, 11))
	return map[string]stats.Sample{
		"2×3":             gpu.Ratios(rng, 1.1, 2, 3),
		"5×20":            gpu.Ratios(rng, 1.1, 5, 20),
		"20×50":           gpu.Ratios(rng, 1, 20, 50),
		"loud":            simulate.Noise{Between: 1, Within: 2, Dof: 2.1}.Ratios(rng, 3, 7, 9),
		"rounds of one":   gpu.Ratios(rng, 1.1, 30, 1),
		"two values only": {Rounds: [][]float64{{1, 1, 1, 1.5}, {1, 1.5}, {1.5, 1.5, 1}}},
		"1200 rounds":     gpu.Ratios(rng, 1.1, 1200, 2),
	}
}

func TestBoundsAndPValuesAgree(t *testing.T) {
	for name, s := range samples() {
		t.Run(name, func(t *testing.T) {
			d := bootstrap(t, s, stats.Options{Resamples: 2000})
			rng := rand.New(rand.NewPCG(12, 12))
			for range trials(2000) {
				alpha := math.Exp(-12 * rng.Float64())
				x := d.Estimate * math.Exp(6*(2*rng.Float64()-1)*d.StdErr)
				if rng.IntN(4) == 0 {
					x = d.Estimate * math.Exp(d.Offsets()[rng.IntN(2000)])
				}
				// A hair on either side of x takes the rounding of x away.
				upper, lower := d.Upper(alpha), d.Lower(alpha)
				below, above := d.PBelow(x), d.PAbove(x)
				if upper <= x*(1-1e-9) && below > alpha || upper >= x*(1+1e-9) && below < alpha*(1-1e-9) {
					t.Fatalf("PBelow(%v) = %v but Upper(%v) = %v", x, below, alpha, upper)
				}
				if lower >= x*(1+1e-9) && above > alpha || lower <= x*(1-1e-9) && above < alpha*(1-1e-9) {
					t.Fatalf("PAbove(%v) = %v but Lower(%v) = %v", x, above, alpha, lower)
				}
				if !(below >= 0 && below <= 1 && above >= 0 && above <= 1) {
					t.Fatalf("p-values %v and %v", below, above)
				}
				if y := x * (1 + rng.Float64()); d.PBelow(y) > below || d.PAbove(y) < above {
					t.Fatalf("p-values are not monotone between %v and %v", x, y)
				}
				if beta := alpha * rng.Float64(); d.Upper(beta) < upper || d.Lower(beta) > lower {
					t.Fatalf("a smaller error rate than %v, %v, gave a tighter bound", alpha, beta)
				}
			}
		})
	}
}

// With two rounds the bounds can be computed by hand: whatever the percentile
// says, they lie at least t(1)·StdErr out.
func TestFewRoundsUseStudent(t *testing.T) {
	d := bootstrap(t, stats.Sample{Rounds: [][]float64{{1}, {math.E}}}, stats.Options{})
	// Resamples of two single values: both low, both high, or one of each. The
	// log of the median is 0, 1 or ½ with chances ¼, ¼, ½: variance 1/8, and
	// twice that after the correction for two rounds.
	if math.Abs(d.StdErr-0.5) > 0.01 {
		t.Errorf("standard error %v, want about 0.5", d.StdErr)
	}
	const t1 = 12.706204736174705 // Student's t with 1 degree of freedom at 0.975
	i := d.Interval(0.95)
	if want := d.Estimate * math.Exp(t1*d.StdErr); math.Abs(i.Upper/want-1) > 1e-9 {
		t.Errorf("upper bound %v, want %v", i.Upper, want)
	}
	if want := d.Estimate * math.Exp(-t1*d.StdErr); math.Abs(i.Lower/want-1) > 1e-9 {
		t.Errorf("lower bound %v, want %v", i.Lower, want)
	}
	if i.Confidence != 0.95 {
		t.Errorf("confidence %v", i.Confidence)
	}
}

// Rounds that lie farther apart above the median than below it leave more room
// above the estimate; the t bound alone would not know.
func TestPercentileFollowsTheSkew(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	s := stats.Sample{}
	for r := range 12 {
		level := math.Exp(-0.1 * math.Log1p(-(float64(r)+0.5)/12))
		s.Rounds = append(s.Rounds, simulate.Noise{Within: 0.005}.Ratios(rng, level, 1, 20).Rounds...)
	}
	d := bootstrap(t, s, stats.Options{})
	up, down := math.Log(d.Upper(0.01)/d.Estimate), math.Log(d.Estimate/d.Lower(0.01))
	t.Logf("+%.4f −%.4f around %.4f, standard error %.4f", up, down, d.Estimate, d.StdErr)
	if up < 1.05*down {
		t.Errorf("bounds +%v and −%v around a sample skewed upwards", up, down)
	}
}

func TestImpossibleErrorRatesClaimNothing(t *testing.T) {
	d := bootstrap(t, samples()["5×20"], stats.Options{})
	for _, alpha := range []float64{-1, 0, 1, 2, math.NaN(), math.Inf(1)} {
		if d.Lower(alpha) != 0 || !math.IsInf(d.Upper(alpha), 1) {
			t.Errorf("alpha %v: [%v, %v]", alpha, d.Lower(alpha), d.Upper(alpha))
		}
		if !math.IsInf(d.Detectable(alpha, 0.8), 1) || d.RoundsNeeded(2, alpha, 0.8) != stats.Never || d.RoundsNeeded(2, 0.05, alpha) != stats.Never {
			t.Errorf("alpha or power %v promises an effect", alpha)
		}
	}
	for _, c := range []struct{ threshold, below, above float64 }{
		{math.NaN(), 1, 1},
		{0, 1, 0},
		{-1, 1, 0},
		{math.Inf(1), 0, 1},
	} {
		if below, above := d.PBelow(c.threshold), d.PAbove(c.threshold); below != c.below || above != c.above {
			t.Errorf("threshold %v: p below %v, above %v, want %v and %v", c.threshold, below, above, c.below, c.above)
		}
	}
	if d.RoundsNeeded(math.NaN(), 0.05, 0.8) != stats.Never || d.RoundsNeeded(-1, 0.05, 0.8) != stats.Never {
		t.Error("a threshold that is no ratio can be decided")
	}
}
