package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// Fewer resamples than a verdict uses: the simulation averages over samples,
// and the noise of the resampling with them.
const simulationResamples = 1_500

// resamples are shared by ten trials, one after the other: what they have in common averages out over the next ones, and to
// draw them takes longer than to use them.
type resamples struct{ draws *stats.ResamplePlan }

func (r *resamples) of(t testing.TB, trial int) *stats.ResamplePlan {
	t.Helper()
	if trial%10 == 0 {
		var err error
		if r.draws, err = stats.NewResamplePlan(simulationResamples, uint64(trial)); err != nil {
			t.Fatal(err)
		}
	}
	return r.draws
}

// quantile is what the draws say about the median.
func quantile(t testing.TB, s stats.Sample, draws *stats.ResamplePlan) *stats.Distribution {
	t.Helper()
	d, err := draws.Quantile(s, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// trials scales the number of simulated runs down where each costs more.
func trials(full int) int {
	if raceEnabled {
		return full / 16
	}
	return full
}

// slack is three standard errors of a rate estimated from n trials.
func slack(rate float64, n int) float64 { return 3 * math.Sqrt(rate*(1-rate)/float64(n)) }

// naive is the interval that takes every launch for an independent witness.
func naive(s stats.Sample, confidence float64) stats.Interval {
	var logs []float64
	for _, round := range s.Rounds {
		for _, v := range round {
			logs = append(logs, math.Log(v))
		}
	}
	d := stats.Describe(logs)
	t := distuv.StudentsT{Sigma: 1, Nu: float64(d.N - 1)}.Quantile((1 + confidence) / 2)
	half := t * d.Std / math.Sqrt(float64(d.N))
	return stats.Interval{Lower: math.Exp(d.Mean - half), Upper: math.Exp(d.Mean + half), Confidence: confidence}
}

func TestCoverage(t *testing.T) {
	const truth = 1.1
	cases := []struct {
		noise         simulate.Noise
		rounds, pairs int
	}{
		{gpu, 5, 20},
		{gpu, 8, 30},
		{gpu, 12, 50},
		{gpu, 20, 50},
		{simulate.Noise{Within: 0.02, Dof: 3}, 8, 30},
		{simulate.Noise{Between: 0.02, Within: 0.002}, 5, 20},
	}
	n := trials(1000)
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d×%d between %v within %v", c.rounds, c.pairs, c.noise.Between, c.noise.Within), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			var covered, naiveCovered, falseAbove, falseBelow int
			var width float64
			var shared resamples
			for trial := range n {
				s := c.noise.Ratios(rng, truth, c.rounds, c.pairs)
				d := quantile(t, s, shared.of(t, trial))
				interval := d.Interval(0.95)
				if holds(interval, truth) {
					covered++
				}
				if holds(naive(s, 0.95), truth) {
					naiveCovered++
				}
				if d.PAbove(truth) <= 0.05 {
					falseAbove++
				}
				if d.PBelow(truth) <= 0.05 {
					falseBelow++
				}
				width += math.Log(interval.Upper / interval.Lower)
			}
			rate := func(count int) float64 { return float64(count) / float64(n) }
			t.Logf("%d runs: 95 %% interval covers %.1f %%, mean width %.2f %%; naive t over all launches covers %.1f %%; "+
				"false claims at alpha 5 %%: above %.1f %%, below %.1f %%",
				n, 100*rate(covered), 100*width/float64(n), 100*rate(naiveCovered), 100*rate(falseAbove), 100*rate(falseBelow))

			floor := 0.93
			if n < 1000 {
				floor = 0.95 - slack(0.95, n)
			}
			if rate(covered) < floor {
				t.Errorf("the 95 %% interval covers %.3f, want at least %.3f", rate(covered), floor)
			}
			for _, count := range []int{falseAbove, falseBelow} {
				if ceiling := 0.05 + slack(0.05, n); rate(count) > ceiling {
					t.Errorf("false claims at alpha 0.05: %.3f, want at most %.3f", rate(count), ceiling)
				}
			}
			if c.rounds == 20 && rate(naiveCovered) >= 0.8 {
				t.Errorf("the naive interval covers %.3f: the noise between rounds is not in the data", rate(naiveCovered))
			}
		})
	}
}

func holds(i stats.Interval, truth float64) bool { return i.Lower <= truth && truth <= i.Upper }

func TestLooksShareOneErrorRate(t *testing.T) {
	const alpha = 0.1
	interims := []int{5, 10, 15, 20}
	shares, err := stats.Spend(alpha, interims)
	if err != nil {
		t.Fatal(err)
	}
	n := trials(320)
	rng := rand.New(rand.NewPCG(8, 8))
	var spent, unspent int
	var shared resamples
	for trial := range n {
		s := gpu.Ratios(rng, 1.1, interims[len(interims)-1], 20)
		var claimed, claimedUnspent bool
		for k, rounds := range interims {
			d := quantile(t, stats.Sample{Rounds: s.Rounds[:rounds]}, shared.of(t, trial))
			p := d.PAbove(1.1)
			claimed = claimed || p <= shares[k]
			claimedUnspent = claimedUnspent || p <= alpha
		}
		if claimed {
			spent++
		}
		if claimedUnspent {
			unspent++
		}
	}
	rate, rateUnspent := float64(spent)/float64(n), float64(unspent)/float64(n)
	t.Logf("%d runs of %d interims at alpha %v: false claims %.1f %%; without spending %.1f %%", n, len(interims), alpha, 100*rate, 100*rateUnspent)
	if ceiling := alpha + slack(alpha, n); rate > ceiling {
		t.Errorf("false claims over all interims: %.3f, want at most %.3f", rate, ceiling)
	}
	if rateUnspent <= rate {
		t.Errorf("looking at full alpha each time errs in %.3f, no more than the %.3f with spending", rateUnspent, rate)
	}
}

func TestDetectableHoldsItsPower(t *testing.T) {
	const alpha, power, rounds, pairs, threshold = 0.05, 0.8, 12, 40, 1.1
	n := trials(320)
	rng := rand.New(rand.NewPCG(9, 9))
	var shared resamples
	draws := shared.of(t, 0)
	var sum float64
	for range n {
		sum += quantile(t, gpu.Ratios(rng, 1, rounds, pairs), draws).Detectable(alpha, power)
	}
	effect := sum / float64(n)
	proven := 0
	for range n {
		if quantile(t, gpu.Ratios(rng, threshold*(1+effect), rounds, pairs), draws).Lower(alpha) >= threshold {
			proven++
		}
	}
	rate := float64(proven) / float64(n)
	t.Logf("%d×%d: a true distance of %.2f %% from the threshold was proven in %.1f %% of %d runs, asked for %.0f %%", rounds, pairs, 100*effect, 100*rate, n, 100*power)
	if s := slack(power, n); rate < power-s || rate > 0.92+s {
		t.Errorf("power %.3f at the detectable distance, want about %v", rate, power)
	}
}
