package pages

import (
	"html/template"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A Runner is a runner with its current state.
type Runner struct {
	Name     string         `json:"name"`
	Labels   []string       `json:"labels"`
	Seen     time.Time      `json:"last_seen,omitzero"`
	Here     bool           `json:"connected"`
	Job      string         `json:"job,omitempty"`
	Progress *runners.Event `json:"progress,omitempty"`
	// Health is its last report about its host. Tests are its self-tests, oldest first.
	Health *protocol.Health    `json:"health,omitempty"`
	Tests  []protocol.SelfTest `json:"self_tests,omitempty"`
	Off    string              `json:"off,omitempty"` // drained or in quarantine: it gets no jobs
}

// Tested returns the last self-test, or nil.
func (r Runner) Tested() *protocol.SelfTest {
	if len(r.Tests) == 0 {
		return nil
	}
	return &r.Tests[len(r.Tests)-1]
}

// Drift draws the times of the self-tests.
func (r Runner) Drift() template.HTML {
	var times []float64
	for _, t := range r.Tests {
		if t.Micros > 0 {
			times = append(times, t.Micros)
		}
	}
	if len(times) < 2 {
		return ""
	}
	return picture(chart.Spark(r.Name+": the self-test's time", times))
}

// shown removes details that identify a host and do not concern readers.
func (r Runner) shown() Runner {
	if r.Health != nil && r.Health.GPU != nil {
		health, gpu := *r.Health, *r.Health.GPU
		gpu.UUID = ""
		gpu.Xids = slices.Clone(gpu.Xids)
		for i := range gpu.Xids {
			gpu.Xids[i].Text = "" // may name processes
		}
		health.GPU = &gpu
		r.Health = &health
	}
	return r
}

// Fit reports whether the runner's measurements can be trusted, as far as is known.
func (r Runner) Fit() sign {
	switch {
	case r.Off == Quarantined || r.Tested() != nil && !r.Tested().Passed || r.Health != nil && r.Health.Unfit != "":
		return sign{"✗", "not fit", "fail"}
	case r.Health != nil && r.Health.GPU != nil && len(r.Health.GPU.Throttled) > 0:
		return sign{"!", "slowed down", "open"}
	case r.Tested() != nil:
		return sign{"✓", "fit", "pass"}
	}
	return sign{"?", "not tested", "none"}
}

// Drained and Quarantined say in one word why a runner gets no jobs. The full reason may name
// kernels of any repository.
const (
	Drained     = "drained"
	Quarantined = "in quarantine"
)
