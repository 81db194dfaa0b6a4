//go:build !race

package gates

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

var (
	fullTable = flag.Int("simulate", 0, "runs per kind of noise of the table of error rates")
	record    = flag.Bool("record", false, "record the table of error rates")
)

// rates is how the gate does on one kind of noise.
type rates struct {
	model     string
	falsePass int // of a truth right on the threshold
	passed    int // of a truth above it
	runs      int
	rounds    float64 // on average, until a truth above it was decided
	withheld  int     // runs that ended in ERROR (runner), of either truth
}

const (
	simulatedPolicy = `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}`
	simulatedGain   = 1.12
	policyRate      = 0.025 // one side of 95 %
)

// simulatedModels is every kind of noise of the table.
func simulatedModels(t testing.TB) []noiseModel {
	return append(noiseModels(), recordedModels(t)...)
}

// simulateRates takes runs of both truths through the judge.
func simulateRates(p *policy.Policy, model noiseModel, runs int) rates {
	r := rates{model: model.Name, runs: runs}
	tick := 0.0
	if model.Name == "three clock ticks" {
		tick = 0.004
	}
	quick := quickResamples()
	for run := range runs {
		on := machine{model: model, ratio: 1.1, blocks: 20, tick: tick}
		switch v := judge(p, "test.yaml", on.measured(rand.New(rand.NewPCG(11, uint64(run))), 20), quick); v.Outcome {
		case Pass:
			r.falsePass++
		case Error:
			r.withheld++
		}
		above := machine{model: model, ratio: simulatedGain, blocks: 20, tick: tick}
		// The judge goes by the first look that decides, and does not see the rounds behind it.
		v := judge(p, "test.yaml", above.measured(rand.New(rand.NewPCG(12, uint64(run))), 20), quick)
		switch v.Outcome {
		case Pass:
			r.passed++
		case Error:
			r.withheld++
		}
		r.rounds += float64(v.Measuring.Rounds) / float64(runs)
	}
	return r
}

// markdown is the table as docs/statistics.md shows it.
func markdown(table []rates) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| noise | false PASS at +10 %% | PASS at +12 %% | rounds |\n| --- | --: | --: | --: |\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %.1f %% | %.0f %% | %.1f |\n", r.model,
			100*float64(r.falsePass)/float64(r.runs), 100*float64(r.passed)/float64(r.runs), r.rounds)
	}
	return b.String()
}

// The gate's error rates over fourteen kinds of noise, through the judge itself: a
// truth right on the threshold passes no more often than the policy allows. In `make
// test` a few hundred runs each; `make bench` takes more, and prints the table.
func TestErrorRatesOfAllNoise(t *testing.T) {
	long.Test(t)
	runs := 100
	if *fullTable > 0 {
		runs = *fullTable
	}
	p := performancePolicy(t, simulatedPolicy)
	models := simulatedModels(t)
	if len(models) < 14 {
		t.Fatalf("%d kinds of noise", len(models))
	}
	table := make([]rates, len(models))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, model := range models {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			table[i] = simulateRates(p, model, runs)
		})
	}
	work.Wait()
	withheld := 0
	all, allRuns := 0, 0
	for _, r := range table {
		withheld += r.withheld
		all, allRuns = all+r.falsePass, allRuns+r.runs
		limit := policyRate + 3*math.Sqrt(policyRate*(1-policyRate)/float64(r.runs))
		if share := float64(r.falsePass) / float64(r.runs); share > limit {
			t.Errorf("%s: %.3f of %d runs right on the threshold passed, want at most %.3f", r.model, share, r.runs, limit)
		}
	}
	if limit := policyRate + 3*math.Sqrt(policyRate*(1-policyRate)/float64(allRuns)); float64(all)/float64(allRuns) > limit {
		t.Errorf("%d of %d runs of all kinds passed, want at most %.3f", all, allRuns, limit)
	}
	t.Logf("%d runs a kind and truth, %d of them ERROR:\n%s", runs, withheld, markdown(table))
	if *record {
		text := fmt.Sprintf("Of %d runs each:\n\n%s", runs, markdown(table))
		if err := os.WriteFile(recordedTable, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// docs/statistics.md shows the table that was recorded last, as it was.
func TestPageHasTheTable(t *testing.T) {
	table, err := os.ReadFile(recordedTable)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(table), "\n| "); n != 1+1+len(simulatedModels(t)) {
		t.Errorf("the recorded table has %d lines for %d kinds of noise; record it with -simulate 1000 -record", n, len(simulatedModels(t)))
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "statistics.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(table)) {
		t.Errorf("docs/statistics.md does not show %s:\n%s", recordedTable, table)
	}
}

var recordedTable = filepath.Join("testdata", "simulation", "table.md")
