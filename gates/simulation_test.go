//go:build !race

package gates

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// outcomes counts how verdicts fall over many simulated runs.
func outcomes(p *policy.Policy, tr truth, runs int, seed uint64) (count map[string]int, rounds float64) {
	count = map[string]int{}
	r := quickResamples()
	for run := range runs {
		v := tr.decide(p, rand.New(rand.NewPCG(seed, uint64(run))), r)
		key := string(v.Outcome)
		if v.Reason != "" {
			key += " " + string(v.Reason)
		}
		count[key]++
		rounds += float64(v.Measuring.Rounds) / float64(runs)
	}
	return count, rounds
}

// The gate's own error rates on hierarchical, heavy-tailed noise: 1 % between
// rounds, 2 % within. Everything here is the real path: Next, then Judge. The
// race detector would make it many times slower and has nothing to find in
// arithmetic, so `make test` runs this package without it and shows the counts.
func TestErrorRates(t *testing.T) {
	long.Test(t)
	same := map[string]float64{"mission": 1}
	for _, c := range []struct {
		name   string
		policy string
		truth  truth
		runs   int
		right  string
		least  float64 // share of right
		wrong  string
		most   float64 // share of wrong
	}{
		{"A/A at a +2 % gate hardly ever passes", target2, truth{heavyTailed, same, 1, 30}, 200,
			"DEFER too-slow", 0.9, "PASS", 1.0 / 200},
		{"a change right on the +2 % gate passes no more often than the error rate", target2,
			truth{heavyTailed, map[string]float64{"mission": 1.02}, 1, 30}, 200, "DEFER inconclusive", 0.8, "PASS", 0.05},
		{"a true +12 % passes a +10 % gate within the default rounds", target10,
			truth{heavyTailed, map[string]float64{"mission": 1.12}, 1, 30}, 150, "PASS", 0.8, "DEFER too-slow", 0.01},
		{"a regression guard at -2 % stays silent for an equal kernel", `{guard: {shapes: all, speedup: ">= -2%"}, control: 5%, pairs: 30}`,
			truth{heavyTailed, map[string]float64{"mission": 1, "small": 1, "long": 1}, 1, 30}, 100, "PASS", 0.8, "DEFER regression", 0.05},
		{"three guards exactly at -2 % fire together no more often than the error rate", `{guard: {shapes: all, speedup: ">= -2%"}, control: 5%, pairs: 30}`,
			truth{heavyTailed, map[string]float64{"mission": 0.98, "small": 0.98, "long": 0.98}, 1, 30}, 100, "DEFER inconclusive", 0.8, "DEFER regression", 0.05},
		{"a true -6 % is found by the guard", `{guard: {shapes: all, speedup: ">= -2%"}, control: 5%, pairs: 30}`,
			truth{heavyTailed, map[string]float64{"mission": 1, "small": 0.94, "long": 1}, 1, 30}, 100, "DEFER regression", 0.9, "PASS", 0.01},
		{"a shape right on the +10 % gate beside three that are soon proven passes no more often than the error rate", `{target: {shapes: all, speedup: ">= +10%"}, control: 5%, pairs: 30}`,
			truth{heavyTailed, map[string]float64{"mission": 1.1, "small": 1.2, "long": 1.3, "batch": 1.4}, 1, 30}, 200, "DEFER inconclusive", 0.8, "PASS", 0.05},
		{"a runner whose two copies of the baseline differ is told so", target10,
			truth{heavyTailed, map[string]float64{"mission": 1.3}, 1.1, 30}, 60, "ERROR runner", 0.95, "PASS", 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			count, rounds := outcomes(performancePolicy(t, c.policy), c.truth, c.runs, 1)
			t.Logf("%s: %d runs: %v, %.1f rounds on average", c.name, c.runs, count, rounds)
			if share := float64(count[c.right]) / float64(c.runs); share < c.least {
				t.Errorf("%s in %.3f of the runs, want at least %.3f", c.right, share, c.least)
			}
			if share := float64(count[c.wrong]) / float64(c.runs); share > c.most {
				t.Errorf("%s in %.3f of the runs, want at most %.3f", c.wrong, share, c.most)
			}
		})
	}
}

// For contrast: the t-interval over all launches, which takes launches of one
// process for independent, on the same noise. A gate built on it that asks
// whether an equal kernel is any faster (> 0) is wrong far more often than its
// 2.5 %.
func TestNaiveIntervalFailsItsOwnControl(t *testing.T) {
	const runs, rounds, pairs = 400, 6, 30
	claims := 0
	for run := range runs {
		var logs []float64
		for _, round := range heavyTailed.Ratios(rand.New(rand.NewPCG(2, uint64(run))), 1, rounds, pairs).Rounds {
			for _, r := range round {
				logs = append(logs, math.Log(r))
			}
		}
		mean, std := meanStd(logs)
		n := float64(len(logs))
		t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
		if mean-t.Quantile(0.975)*std/math.Sqrt(n) > 0 {
			claims++
		}
	}
	ours := performancePolicy(t, `{target: {shapes: [mission], speedup: ">= 0%"}, rounds: {min: 6, max: 6}, control: 5%, pairs: 30}`)
	count, _ := outcomes(ours, truth{heavyTailed, map[string]float64{"mission": 1}, 1, pairs}, runs, 2)
	naive, own := float64(claims)/runs, float64(count["PASS"])/runs
	t.Logf("A/A claims of a gain at a nominal 2.5 %%: naive t-interval over launches %.1f %%, cluster bootstrap over rounds %.1f %%", naive*100, own*100)
	if naive < 0.1 {
		t.Errorf("the naive interval claims a gain in only %.3f of the A/A runs: this noise shows nothing", naive)
	}
	if own > 0.025 {
		t.Errorf("ours claims a gain in %.3f of the A/A runs", own)
	}
}

func meanStd(x []float64) (mean, std float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		std += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(std)
}
