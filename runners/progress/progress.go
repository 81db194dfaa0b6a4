// Package progress shows people what a run is doing: one live line on a
// terminal, plain lines elsewhere. It decides nothing and keeps nothing.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/kernelgate/kernelgate/runners"
)

// A Line repaints one line of a terminal.
type Line struct {
	Out   io.Writer
	Width int
	drawn bool
}

// Report paints the event over the last one.
func (l *Line) Report(e runners.Event) {
	text := "… " + Text(e)
	if lipgloss.Width(text) >= l.Width {
		text = truncate(text, l.Width-1)
	}
	fmt.Fprintf(l.Out, "\r\x1b[2K%s", text)
	l.drawn = true
}

// Clear takes the line away, so that something else can be printed.
func (l *Line) Clear() {
	if l.drawn {
		fmt.Fprint(l.Out, "\r\x1b[2K")
		l.drawn = false
	}
}

func truncate(text string, width int) string {
	var b strings.Builder
	for _, r := range text {
		if lipgloss.Width(b.String()+string(r)) > max(width-1, 1) {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// Plain prints a line where something new begins, and where rounds go on; it
// never repeats itself for every case.
type Plain struct {
	Out  io.Writer
	gate string
	done int
}

// Report prints the event if a reader of a log would want it.
func (p *Plain) Report(e runners.Event) {
	if e.Gate == p.gate && (e.Unit == "cases" || e.Unit == "rounds" && e.Done == p.done) {
		return
	}
	p.gate, p.done = e.Gate, e.Done
	if e.Unit == "cases" {
		e = runners.Event{Gate: e.Gate, Text: fmt.Sprintf("comparing %d cases with the reference", e.Total)}
	}
	fmt.Fprintln(p.Out, Text(e))
}

// Clear does nothing: what was printed stays.
func (p *Plain) Clear() {}

// Text is an event in one line.
func Text(e runners.Event) string {
	parts := []string{e.Gate + ": " + e.Text}
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
