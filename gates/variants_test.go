//go:build !race

package gates

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
)

// variantNumbers are the machine codes that the table shows. Between two of them the pass
// rate of the earlier one counts, which is an upper bound.
var variantNumbers = []int{1, 2, 5, 10, 50, 200}

// variantRates is how often runs of one truth pass, by variantNumbers.
type variantRates struct {
	model  string
	truth  float64
	runs   int
	passed []int
}

// simulateVariants judges each run as the first machine code of a change and, as long as
// it passes, as later ones.
func simulateVariants(t *testing.T, model noiseModel, truth float64, runs int) variantRates {
	p := performancePolicy(t, simulatedPolicy)
	v := variantRates{model.Name, truth, runs, make([]int, len(variantNumbers))}
	quick := quickResamples()
	for run := range runs {
		e := machine{model: model, ratio: truth, blocks: 20}.measured(newRand(91, uint64(run)), 24)
		for i, n := range variantNumbers {
			if judge(p, "test.yaml", number(e, n), quick).Outcome != Pass {
				break
			}
			v.passed[i]++
		}
	}
	return v
}

// ofMany is the chance that at least one of 200 variants passes.
func (v variantRates) ofMany() float64 {
	none := 0.0
	for n := 1; n <= 200; n++ {
		i := len(variantNumbers) - 1
		for variantNumbers[i] > n {
			i--
		}
		none += math.Log1p(-float64(v.passed[i]) / float64(v.runs))
	}
	return 1 - math.Exp(none)
}

// An author who pushes two hundred trivially different machine codes has one chance, not
// two hundred: a truth on the threshold passes with any of them no more often than the
// policy allows. A gain that is really larger still passes.
func TestVariantsHaveOneChance(t *testing.T) {
	long.Test(t)
	models := map[string]noiseModel{}
	for _, m := range append(noiseModels(), recordedModels(t)...) {
		models[m.Name] = m
	}
	const independent, swapped, recorded = "independent launches", "±3 % swapped between copies", "recorded, with the offsets of whole runs"
	table := []variantRates{
		{model: independent, truth: 1.12, runs: 40}, {model: independent, truth: 1.10, runs: 50},
		{model: swapped, truth: 1.10, runs: 400}, {model: swapped, truth: 1.095, runs: 200}, {model: recorded, truth: 1.12, runs: 40}, {model: recorded, truth: 1.10, runs: 200},
	}
	var work sync.WaitGroup
	for i, c := range table {
		work.Go(func() { table[i] = simulateVariants(t, models[c.model], c.truth, c.runs) })
	}
	work.Wait()
	var text strings.Builder
	fmt.Fprintf(&text, "\n%-42s %6s", "noise", "truth")
	for _, n := range variantNumbers {
		fmt.Fprintf(&text, " %7s", fmt.Sprintf("k=%d", n))
	}
	fmt.Fprintf(&text, " %13s\n", "any of 200")
	for _, v := range table {
		rate, limit := v.ofMany(), 0.05+3*math.Sqrt(0.05*0.95/float64(v.runs))
		fmt.Fprintf(&text, "%-42s %+5.1f%%", v.model, 100*(v.truth-1))
		for _, passed := range v.passed {
			fmt.Fprintf(&text, " %6.1f%%", 100*float64(passed)/float64(v.runs))
		}
		if v.truth > 1.10 {
			fmt.Fprintln(&text)
		} else {
			fmt.Fprintf(&text, " %10.1f%%\n", 100*rate)
		}
		if v.truth <= 1.10 && rate > limit {
			t.Errorf("%s: a true %+.1f %% passes with any of 200 variants in %.3f, want at most %.3f", v.model, 100*(v.truth-1), rate, limit)
		}
		if tenth := v.passed[3]; v.truth == 1.12 && v.model == independent && float64(tenth) < 0.95*float64(v.runs) {
			t.Errorf("%s: a true +12 %% passes as machine code 10 in %d of %d runs", v.model, tenth, v.runs)
		}
	}
	t.Log(text.String())
}
