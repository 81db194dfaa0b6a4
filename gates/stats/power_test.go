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

// Of many runs that are continued, about as many decide as their first rounds predict.
func TestChanceToDecide(t *testing.T) {
	const runs, first, all, alpha = 600, 6, 16, 0.02
	noise, rng := simulate.Noise{Between: 0.1, Within: 0.05}, rand.New(rand.NewPCG(23, 23))
	var expected, decided float64
	unlikely, surprises := 0.0, 0.0
	for range runs {
		sample := noise.Ratios(rng, math.Exp(0.4*(rng.Float64()-0.5)), all, 10)
		early := bootstrap(t, stats.Sample{Rounds: sample.Rounds[:first]}, stats.Options{Resamples: stats.MinResamples})
		late := bootstrap(t, sample, stats.Options{Resamples: stats.MinResamples})
		chance := early.ChanceToDecide(1, all, alpha)
		if chance < 0 || chance > 1+1e-9 {
			t.Fatalf("a chance of %v", chance)
		}
		done := late.PAbove(1) <= alpha || late.PBelow(1) <= alpha
		expected += chance
		if done {
			decided++
		}
		if chance < 0.2 {
			unlikely++
			if done {
				surprises++
			}
		}
	}
	t.Logf("expected %.2f, decided %.2f; of %.0f with a chance below 20 %%, %.2f decide", expected/runs, decided/runs, unlikely, surprises/unlikely)
	if math.Abs(expected-decided)/runs > 0.1 || unlikely < 50 || surprises/unlikely > 0.25 {
		t.Errorf("%.0f of %d runs were expected to decide, and %.0f do; of %.0f unlikely ones %.0f do", expected, runs, decided, unlikely, surprises)
	}
	d := bootstrap(t, noise.Ratios(rng, 1.1, 6, 10), stats.Options{})
	for _, c := range []struct {
		threshold, alpha float64
		rounds           int
	}{{0, 0.02, 16}, {-1, 0.02, 16}, {math.NaN(), 0.02, 16}, {1, 0.02, 1}, {1, 0, 16}, {1, 0.5, 16}, {1, math.NaN(), 16}} {
		if got := d.ChanceToDecide(c.threshold, c.rounds, c.alpha); got != 0 {
			t.Errorf("%+v: a chance of %v", c, got)
		}
	}
	if !math.IsInf(d.DetectableAfter(1, 0.02, 0.8), 1) || !math.IsInf(d.DetectableAfter(16, 0.7, 0.8), 1) {
		t.Error("arguments that make no sense show a difference")
	}
	if now, later := d.DetectableAfter(6, 0.02, 0.8), d.DetectableAfter(16, 0.02, 0.8); later >= now || math.Abs(now-d.Detectable(0.02, 0.8)) > 1e-9 {
		t.Errorf("detectable after 6 rounds %v (%v), after 16 %v", now, d.Detectable(0.02, 0.8), later)
	}
}
