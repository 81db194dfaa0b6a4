package gates

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkJudge is the promise of `kernelgate judge`: 20 rounds × 3 shapes ×
// 200 pairs in under 200 ms.
func BenchmarkJudge(b *testing.B) {
	p := performancePolicy(b, `{target: {shapes: [mission], speedup: ">= +10%"}, guard: {shapes: all, speedup: ">= -2%"}, control: 5%, pairs: 200}`)
	e := evidence("mission", "small", "long")
	// On the threshold, so that all three looks are taken.
	truth{heavyTailed, map[string]float64{"mission": 1.10, "small": 1, "long": 1}, 1, 200}.measure(e, rand.New(rand.NewPCG(1, 2)), 20, 1)
	if v := Judge(p, "test.yaml", e); v.Measuring.Rounds != 20 {
		b.Fatalf("judged after %d rounds: %s", v.Measuring.Rounds, v.Summary)
	}
	for b.Loop() {
		Judge(p, "test.yaml", e)
	}
	if per := b.Elapsed().Seconds() / float64(b.N); per > 0 {
		b.ReportMetric(0.2/per, "×faster-than-200ms")
	}
}
