package present

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/runners"
)

// silence is how old a runner's word may be before it is called old.
const silence = 2 * time.Minute

// working is what a runner does with a run, as plain text.
func (v View) working(r change.Run) string {
	doing := "Running"
	if r.Builds {
		doing = "Building"
	}
	if r.Runner != "" {
		doing += " on " + r.Runner
	}
	p, ok := v.Progress[r.Job]
	if !ok {
		return doing
	}
	text := progressLine(p.Event)
	if r.Builds {
		p.Gate = ""
		text = doing + ": " + progressLine(p.Event)
	}
	if age := v.Now.Sub(p.At); !v.Now.IsZero() && !p.At.IsZero() && age > silence {
		text += fmt.Sprintf(" (last report %s ago)", duration(age))
	}
	return text
}

// progressLine is what a runner does at the moment, or what a queued job waits for, in one line.
func progressLine(p runners.Event) string {
	var parts []string
	if p.Text != "" {
		parts = append(parts, p.Text)
	}
	if p.Total > 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %d of %d", strings.TrimSuffix(p.Unit, "s"), min(p.Done+1, p.Total), p.Total)))
	}
	if p.Detail != "" {
		parts = append(parts, p.Detail)
	}
	if p.Left > 0 {
		parts = append(parts, "about "+duration(p.Left.Duration())+" left")
	}
	text := strings.Join(parts, ", ")
	switch {
	case p.Gate == "":
		return text
	case text == "":
		return string(p.Gate)
	}
	return string(p.Gate) + ": " + text
}

// waiting is what a queued run waits for, as plain text.
func (v View) waiting(r change.Run) string {
	if p := progressLine(v.Progress[r.Job].Event); p != "" {
		return p
	}
	place, placed := v.Places[r.Job]
	if placed && place.Held != nil {
		return "Held back: " + place.Held.String()
	}
	text := "Waiting for a runner"
	if len(r.Labels) > 0 {
		text += " labelled " + strings.Join(r.Labels, " or ")
	}
	fit, busy := v.fitting(r.Labels)
	if c := r.Compiled; c != nil && c.Fault == "" {
		text = "Built on " + c.By + ", w" + text[1:]
	} else if hosts, working := v.fitting([]string{r.Build}); c == nil && r.Build != "" && hosts > 0 {
		text, fit, busy = "Waiting for a host that builds", hosts, working
	}
	switch {
	case fit == 0:
		return text + ": none is connected"
	case placed && (place.Ahead > 0 || place.Wait > 0):
		return text + ": " + inLine(place)
	case busy == 1 && fit == 1:
		return text + ": it is busy"
	case busy == fit:
		return text + fmt.Sprintf(": all %d are busy", fit)
	}
	return text
}

// fitting is how many runners are connected that have one of the labels, and how many of them are busy.
func (v View) fitting(labels []string) (fit, busy int) {
	for _, runner := range v.Runners {
		if slices.ContainsFunc(labels, func(l string) bool { return slices.Contains(runner.Labels, l) }) {
			fit++
			if runner.Busy {
				busy++
			}
		}
	}
	return fit, busy
}

// inLine is where a job stands, and how long it may take until its verdict.
func inLine(p scheduler.Position) string {
	text := "next in line"
	switch {
	case p.Ahead == 1:
		text = "one job is ahead"
	case p.Ahead > 1:
		text = fmt.Sprintf("%d jobs are ahead", p.Ahead)
	}
	text += ", starts in about " + duration(p.Wait)
	if p.Took > 0 {
		text += " and takes about " + duration(p.Took)
	}
	return text
}

// duration is one that nobody needs to the second.
func duration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(d.Round(time.Second)/time.Second)))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute)/time.Minute))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour)/time.Hour))
}
