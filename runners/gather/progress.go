package gather

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
)

// withStanding adds the run's standing to every event.
type withStanding struct {
	to  runners.Progress
	now *runners.Standing
}

func standingOf(job runners.Job, e *gates.Evidence, to runners.Progress) *withStanding {
	return &withStanding{to: to, now: &runners.Standing{Kernel: job.Manifest.Name, Kind: e.Device.Kind}}
}

func (w *withStanding) Report(e runners.Event) {
	e.Standing = w.now
	w.to.Report(e)
}

// withinRound adds what a backend reports during a round, the current shape, to what is known about
// the round.
type withinRound struct {
	to  runners.Progress
	now runners.Event
}

func (w withinRound) Report(e runners.Event) {
	now := w.now
	now.Text += " " + e.Text
	w.to.Report(now)
}
