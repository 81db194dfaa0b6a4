package runners

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/gates"
)

// Progress receives what a run is doing. Calls come from one goroutine.
type Progress interface {
	Report(Event)
}

// An Event is one thing worth showing during a run.
type Event struct {
	Gate   gates.Gate `json:"gate,omitempty"`   // or other work, such as rivals
	Text   string     `json:"text,omitempty"`   // the current step: a shape, a case, a side
	Done   int        `json:"done,omitempty"`   // of Total, in the gate's unit
	Total  int        `json:"total,omitempty"`  // 0 if it is not known
	Unit   string     `json:"unit,omitempty"`   // cases, rounds
	Detail string     `json:"detail,omitempty"` // the interval so far, as text
	Left   Seconds    `json:"left_seconds,omitempty"`

	SoFar *gates.SoFar `json:"so_far,omitempty"` // the interval, as numbers

	// Standing is what the run has finished, for a terminal on the same machine; nil if the
	// reporter does not know.
	Standing *Standing `json:"-"`
}

// A Standing is the progress of a kernel through the gates.
type Standing struct {
	Kernel string
	Kind   string             // of the device
	Gates  []gates.GateResult // the finished gates
}

// Seconds is a remaining time; 0 if it is not known.
type Seconds float64

// Duration returns the same as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// String returns an event in one line.
func (e Event) String() string {
	parts := []string{string(e.Gate) + ": " + e.Text}
	if e.Total > 0 {
		singular := strings.TrimSuffix(e.Unit, "s")
		parts = append(parts, fmt.Sprintf("%s %d of %d", singular, min(e.Done+1, e.Total), e.Total))
	}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	if e.Left > 0 {
		parts = append(parts, fmt.Sprintf("about %v left", e.Left.Duration().Round(time.Second)))
	}
	return strings.Join(parts, ", ")
}

// Plain prints a line when something new begins, and for each round. It prints no line for every
// case.
type Plain struct {
	Out  io.Writer
	news news
}

// Report prints the event if a reader of a log would want it.
func (p *Plain) Report(e Event) {
	if line, ok := p.news.of(e); ok {
		fmt.Fprintln(p.Out, line)
	}
}

// Clear does nothing: printed lines stay.
func (p *Plain) Clear() {}
