package gates

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const target2, target10 = `{target: {shapes: [mission], speedup: ">= +2%"}, control: 5%, pairs: 30}`,
	`{target: {shapes: [mission], speedup: ">= +10%"}, control: 5%, pairs: 30}`

// manyShapes is a run of 128 shapes, none of them decided at an early look.
func manyShapes() *Evidence {
	names := []string{"mission"}
	ratios := map[string]float64{}
	for i := range 127 {
		name := fmt.Sprintf("shape%d", i)
		names, ratios[name] = append(names, name), 0.98
	}
	e := evidence(names...)
	ratios["mission"] = 0.98
	truth{heavyTailed, ratios, 1, 50}.measure(e, rand.New(rand.NewPCG(1, 2)), 20, 1)
	return e
}

// spoiledPairs is a run of 20 rounds of 2,000 pairs of which 40 % were disturbed, on the
// threshold, so that all looks are taken.
func spoiledPairs() *Evidence {
	e := evidence("mission")
	rng := rand.New(rand.NewPCG(3, 4))
	truth{heavyTailed, map[string]float64{"mission": 1.1}, 1, 2000}.measure(e, rng, 20, 1)
	for i := range e.Performance.Rounds {
		s := &e.Performance.Rounds[i].Series[0]
		for block := range 2000 {
			if rng.Float64() < 0.4 {
				s.Disturbed = append(s.Disturbed, 3*block, 3*block+1, 3*block+2)
			}
		}
	}
	return e
}

// BenchmarkJudgeLarge is how much faster than half a second large runs are judged.
func BenchmarkJudgeLarge(b *testing.B) {
	shapes := performancePolicy(b, `{guard: {shapes: all, speedup: ">= -2%"}, control: 5%, pairs: 50}`)
	for _, c := range []struct {
		name  string
		judge func()
	}{
		{"128 shapes", func() func() {
			e := manyShapes()
			return func() { Judge(shapes, "test.yaml", e) }
		}()},
		{"2000 pairs a round, 40 % disturbed", func() func() {
			p, e := performancePolicy(b, target10), spoiledPairs()
			return func() { Judge(p, "test.yaml", e) }
		}()},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.judge()
			}
			if per := b.Elapsed().Seconds() / float64(b.N); per > 0 {
				b.ReportMetric(0.5/per, "×faster-than-500ms")
			}
		})
	}
}
