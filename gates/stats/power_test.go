package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

func TestDetectable(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	few := bootstrap(t, gpu.Ratios(rng, 1.1, 5, 50), stats.Options{})
	many := bootstrap(t, gpu.Ratios(rng, 1.1, 40, 50), stats.Options{})
	loud := bootstrap(t, simulate.Noise{Between: 0.05, Within: 0.02}.Ratios(rng, 1.1, 40, 50), stats.Options{})
	t.Logf("5 rounds %.4f, 40 rounds %.4f, 40 loud rounds %.4f", few.Detectable(0.05, 0.8), many.Detectable(0.05, 0.8), loud.Detectable(0.05, 0.8))

	ascending := []struct {
		name     string
		low, top float64
	}{
		{"fewer rounds see less", many.Detectable(0.05, 0.8), few.Detectable(0.05, 0.8)},
		{"more noise hides more", many.Detectable(0.05, 0.8), loud.Detectable(0.05, 0.8)},
		{"a stricter error rate asks for more", few.Detectable(0.1, 0.8), few.Detectable(0.01, 0.8)},
		{"more power asks for more", few.Detectable(0.05, 0.5), few.Detectable(0.05, 0.95)},
		{"no less than the bound's reach", few.Upper(0.05)/few.Estimate - 1, few.Detectable(0.05, 0.6)},
	}
	for _, c := range ascending {
		if !(c.low > 0 && c.low < c.top) {
			t.Errorf("%s: %v, %v", c.name, c.low, c.top)
		}
	}
}

func TestRoundsNeeded(t *testing.T) {
	d := bootstrap(t, gpu.Ratios(rand.New(rand.NewPCG(22, 22)), 1.1, 10, 50), stats.Options{})
	at := func(distance float64) int { return d.RoundsNeeded(d.Estimate*math.Exp(distance), 0.05, 0.8) }

	if got := at(0); got != stats.Never {
		t.Errorf("on the threshold: %d rounds, want Never", got)
	}
	if got := at(1e-9); got != stats.Never {
		t.Errorf("a billionth from the threshold: %d rounds, want Never", got)
	}
	if got := at(5); got != 2 {
		t.Errorf("far from the threshold: %d rounds, want 2", got)
	}
	before := stats.Never
	for _, distance := range []float64{1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 1} {
		n := at(distance)
		t.Logf("%.3f %% away: %d rounds", 100*distance, n)
		if n > before || n < 2 || n == before && n > 100 {
			t.Errorf("%v away: %d rounds, but %d when nearer", distance, n, before)
		}
		if away := at(-distance); away != n {
			t.Errorf("%v above the threshold: %d rounds, below it %d", distance, away, n)
		}
		before = n
	}
	// A hundred times nearer takes ten thousand times the rounds.
	if ratio := float64(at(1e-5)) / float64(at(1e-3)); math.Abs(ratio/1e4-1) > 0.02 {
		t.Errorf("rounds grow by %v for a hundredth of the distance, want about 10000", ratio)
	}
	// The two figures tell one story: these rounds suffice for what is detectable.
	effect := math.Log1p(d.Detectable(0.05, 0.8))
	if n := at(effect * 1.001); n > d.Rounds {
		t.Errorf("just above the detectable effect: %d rounds, more than the %d at hand", n, d.Rounds)
	}
	if n := at(effect * 0.999); n <= d.Rounds {
		t.Errorf("just below the detectable effect: %d rounds, no more than the %d at hand", n, d.Rounds)
	}
}
