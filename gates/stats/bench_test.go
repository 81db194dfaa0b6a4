package stats_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

func BenchmarkBootstrap20x200(b *testing.B) {
	s := gpu.Ratios(rand.New(rand.NewPCG(1, 1)), 1.1, 20, 200)
	b.ReportAllocs()
	for b.Loop() {
		bootstrap(b, s, stats.Options{Seed: 1})
	}
}

// BenchmarkJudgeLike is the work of one verdict: three shapes, candidate and
// A/A control, bounds and p-values.
func BenchmarkJudgeLike(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var samples []stats.Sample
	for range 3 {
		samples = append(samples, gpu.Ratios(rng, 1.1, 20, 200), gpu.Ratios(rng, 1, 20, 200))
	}
	for b.Loop() {
		for _, s := range samples {
			d := bootstrap(b, s, stats.Options{Seed: 1})
			d.Interval(0.95)
			d.PAbove(1.1)
			d.Detectable(0.05, 0.8)
			d.RoundsNeeded(1.05, 0.05, 0.8)
		}
	}
}
