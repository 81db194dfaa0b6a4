package gates

import (
	"github.com/kernelgate/kernelgate/gates/facts"
)

// noisy is the smallest difference from the goal that all rounds of a policy must be able to show.
// Rounds that can show a smaller one go on, however near to the goal the kernel is.
const noisy = 0.10

// hopeless is the chance of a decision below which further rounds are not worth their time.
const hopeless = 0.2

// tooNoisy is why the policy's remaining rounds cannot decide, or nil. Measuring ends then, without a
// PASS.
func (c *comparison) tooNoisy(e *Evidence, interims []interim) facts.Fact {
	last := interims[len(interims)-1]
	if c.rounds >= last.rounds || e.Performance.Exhausted || e.Performance.Rounds[c.rounds-1].Attempt > 1 {
		return nil
	}
	for _, s := range c.judged() {
		if s.status != Open || s.tooFew {
			continue
		}
		for _, t := range s.tests {
			share := t.dist.DetectableAfter(last.rounds, last.alpha, power)
			if c.proves(t) || share <= noisy || s.offset().Most > share/2 || t.dist.ChanceToDecide(t.threshold, last.rounds, last.alpha) >= hopeless {
				continue
			}
			found := facts.TooNoisy{Shape: s.shape.Label(), Rounds: c.rounds, Most: last.rounds, Share: share, Enough: noisy, Cores: e.Device.Units, Load: e.load()}
			if n := t.dist.RoundsNeeded(t.dist.Estimate*(1+noisy), last.alpha, power); n < affordableRounds {
				found.Needed = n
			}
			return found
		}
	}
	return nil
}

// load is the largest load of the host during the rounds, for a kernel that runs on the host's processors.
func (e *Evidence) load() float64 {
	if e.Device.Kind == DeviceGPU {
		return 0
	}
	most := 0.0
	for _, r := range e.Performance.Rounds {
		for _, f := range []*Fitness{r.Before, r.After} {
			if f != nil {
				most = max(most, f.Load)
			}
		}
	}
	return most
}
