package gates

import (
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A Simulator judges many simulated runs, to show how often the gate errs. It judges as Judge does,
// with fewer resamples, whose noise averages out over the runs. It must not be used concurrently.
type Simulator struct{ resamples *resamples }

// NewSimulator returns a Simulator.
func NewSimulator() *Simulator { return &Simulator{newResamples(stats.MinResamples)} }

// Judge judges one run.
func (s *Simulator) Judge(p *policy.Policy, e *Evidence) *Verdict {
	return judge(p, "", e, s.resamples)
}

// ControlRatios returns the A/A control of a shape: the ratios of baseline and control of each
// undisturbed block, grouped by round.
func ControlRatios(e *Evidence, shape string) stats.Sample {
	if e.Performance == nil {
		return stats.Sample{}
	}
	return collect(e.Performance.Rounds, shape, clean).control
}
