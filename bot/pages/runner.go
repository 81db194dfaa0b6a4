package pages

import (
	"html/template"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A Runner is who measures, and what it does at the moment.
type Runner struct {
	Name     string         `json:"name"`
	Labels   []string       `json:"labels"`
	Seen     time.Time      `json:"last_seen,omitzero"`
	Here     bool           `json:"connected"`
	Job      string         `json:"job,omitempty"`
	Progress *runners.Event `json:"progress,omitempty"`
	// Health is what it said last of its host, and Tests its self-tests, oldest first.
	Health *protocol.Health    `json:"health,omitempty"`
	Tests  []protocol.SelfTest `json:"self_tests,omitempty"`
	Off    string              `json:"off,omitempty"` // drained, or in quarantine: it gets no jobs
}

// Tested is the last self-test, or nil.
func (r Runner) Tested() *protocol.SelfTest {
	if len(r.Tests) == 0 {
		return nil
	}
	return &r.Tests[len(r.Tests)-1]
}

// Drift is the self-test's time, test by test.
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

// shown leaves out what tells one host from others and is no reader's business.
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

// Fit tells whether its measurements are to be relied on, as far as is known.
func (r Runner) Fit() sign {
	switch {
	case r.Off == Quarantined || r.Tested() != nil && !r.Tested().Passed || r.Health != nil && r.Health.Unfit != "":
		return sign{"✗", "not fit", "fail"}
	case r.Health != nil && r.Health.GPU != nil && len(r.Health.GPU.Throttled) > 0:
		return sign{"◷", "slowed down", "open"}
	case r.Tested() != nil:
		return sign{"✓", "fit", "pass"}
	}
	return sign{"?", "not tested", "none"}
}

// Why a runner gets no jobs, in a word: the reason may name kernels of any repository.
const (
	Drained     = "drained"
	Quarantined = "in quarantine"
)
