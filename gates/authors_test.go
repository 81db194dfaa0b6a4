//go:build !race

package gates

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// claimed is the verdict of the n-th machine code that an author claims on one day.
func (tr truth) claimed(p *policy.Policy, rng *rand.Rand, r *resamples, n int) *Verdict {
	e := evidence("mission")
	for need := next(p, e, r); need.Gate == GatePerformance; need = next(p, e, r) {
		tr.measure(e, rng, need.Rounds, 1)
		number(e, n)
	}
	return judge(p, "", e, r)
}

// TestAuthorsWhoAskAgain simulates authors who ask 1,000 times a day. None of their kernels meets the
// goal by more than nothing. Short runs have fewer asks. An author passes on a day if any claim of the day passes, which must not
// happen more often than the policy's error rate.
func TestAuthorsWhoAskAgain(t *testing.T) {
	p := performancePolicy(t, `{target: {shapes: [mission], speedup: ">= +10%"}, control: 5%, pairs: 8, rounds: {min: 6, max: 20}, interims: [6, 12, 20]}`)
	gate := p.Rules[0].Gates.Performance
	probe := p.Probe()
	asks, claims, days := 1000, min(MostCodes(gate), long.Times(12, 1000)), long.Times(2, 10)
	at := func(ratio float64) truth { return truth{heavyTailed, map[string]float64{"mission": ratio}, 1, 8} }
	for name, kernels := range map[string]struct {
		ratio  float64
		probes int // before each claim: the author claims what looks best
	}{
		"a kernel that is equal, with trivial differences":        {1, 0},
		"kernels at the threshold, with trivial differences":      {1.1, 0},
		"an adaptive author, who claims what probes show as best": {1.1, max(1, (long.Times(2*claims, asks)-claims)/claims)},
	} {
		r := quickResamples()
		passed, asked := 0, 0
		for day := range days {
			rng := rand.New(rand.NewPCG(uint64(day), 49))
			for n := 1; n <= claims; n++ {
				best := math.Inf(-1)
				for range kernels.probes {
					asked++
					v := at(kernels.ratio).claimed(probe, rng, r, 1)
					best = max(best, v.ComparisonOf("mission").Speedup.Value)
				}
				if kernels.probes > 0 && best < kernels.ratio-1 {
					continue // nothing looks good enough to claim it
				}
				asked++
				if at(kernels.ratio).claimed(p, rng, r, n).Outcome == Pass {
					passed++
					break
				}
			}
		}
		// All claims of a day spend half of the policy's 5 % on passing. Three standard deviations are luck.
		rate := 1 - float64(gate.Confidence)
		most := rate/2*float64(days) + 3*math.Sqrt(rate/2*float64(days))
		t.Logf("%s: %d days, %d asks, at most %d claims a day: %d days with a PASS (at most %.1f expected)", name, days, asked, claims, passed, most)
		if float64(passed) > most {
			t.Errorf("%s passes on %d of %d days", name, passed, days)
		}
	}
}
