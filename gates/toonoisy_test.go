package gates

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// On a machine whose rounds differ by 40 %, a check ends before its last rounds and says what would be
// needed. On a quiet one it measures on, even if the kernel is exactly at its goal; and a noisy
// machine that shows a large difference measures on, too.
func TestTooNoisy(t *testing.T) {
	p := performancePolicy(t, `{guard: {shapes: all, speedup: ">= -5%"}, control: 50%, pairs: 10, rounds: {min: 6, max: 16}}`)
	loud := simulate.Noise{Between: 0.4, Within: 0.2, Dof: 3}
	for _, c := range []struct {
		name   string
		truth  truth
		early  float64 // the least share of runs that end early without a decision
		atMost float64
	}{
		{"equal under noise of 40 %", truth{loud, map[string]float64{"mission": 1, "small": 1}, 1, 10}, 0.6, 1},
		{"at the goal under noise of 1 %", truth{heavyTailed, map[string]float64{"mission": 0.95}, 1, 10}, 0, 0},
		{"4× under noise of 40 %", truth{loud, map[string]float64{"mission": 4}, 1, 10}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			const runs = 40
			early, r := 0, quickResamples()
			for run := range runs {
				v := c.truth.decide(p, rand.New(rand.NewPCG(3, uint64(run))), r)
				if endedByNoise(v) {
					early++
					if v.Outcome != Defer || v.Reason != ReasonInconclusive || v.Measuring.Rounds >= 16 {
						t.Fatalf("%s %s after %d rounds, want DEFER inconclusive before 16: %s", v.Outcome, v.Reason, v.Measuring.Rounds, v.Summary)
					}
					if !strings.Contains(strings.Join(v.ToPass, "; "), "stop other work") {
						t.Fatalf("the steps are %q", v.ToPass)
					}
				}
			}
			if share := float64(early) / runs; share < c.early || share > c.atMost {
				t.Errorf("%.2f of the runs end early, want %.2f to %.2f", share, c.early, c.atMost)
			}
		})
	}
}

func endedByNoise(v *Verdict) bool {
	for _, r := range v.Gates {
		if _, ok := r.Found.(facts.TooNoisy); ok {
			return true
		}
	}
	return false
}

// The load of the host counts where the kernel runs on its processors.
func TestTooNoisyNamesTheLoad(t *testing.T) {
	p := performancePolicy(t, `{guard: {shapes: all, speedup: ">= -5%"}, control: 50%, pairs: 10, rounds: {min: 6, max: 16}}`)
	tr := truth{simulate.Noise{Between: 0.5, Within: 0.2, Dof: 3}, map[string]float64{"mission": 1}, 1, 10}
	for _, kind := range []string{DeviceCPU, DeviceGPU} {
		e := evidence("mission")
		e.Device = Device{Kind: kind, Units: 2}
		tr.measure(e, rand.New(rand.NewPCG(3, 1)), 6, 1)
		e.Performance.Rounds[2].After = &Fitness{Load: 15}
		summary := Judge(p, "", e).Summary
		if got := strings.Contains(summary, "The load of the host was up to 15 on 2 cores"); got != (kind == DeviceCPU) {
			t.Errorf("on a %s: %s", kind, summary)
		}
	}
}
