package present

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// RunExpiry is how long a run waits for a runner: as long as the journal keeps its bundle.
const RunExpiry = 7 * 24 * time.Hour

// Room for the matrix, and for one of its cells, in characters.
const (
	matrixRoom = 6000
	cellRunes  = 160
)

// onDevices tells whether the policy asks for a run on each of several devices.
func (v View) onDevices() bool {
	return slices.ContainsFunc(v.State.Runs, func(r change.Run) bool { return r.Device != "" })
}

// deciding is the runs whose verdicts decide about the change: those on devices that only inform do not.
func (v View) deciding() []change.Run {
	return slices.DeleteFunc(slices.Clone(v.State.Runs), func(r change.Run) bool { return r.Informs })
}

// noun is what several runs are called.
func (v View) noun() string {
	if v.onDevices() {
		return "runs"
	}
	return "kernels"
}

// allPassed is the title of a head of which all runs pass.
func (v View) allPassed(runs []change.Run) string {
	if !v.onDevices() {
		return fmt.Sprintf("PASS: all %d kernels", len(runs))
	}
	var devices []string
	for _, r := range runs {
		if r.Device != "" && !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	return fmt.Sprintf("PASS: all %d runs (on %s)", len(runs), strings.Join(devices, ", "))
}

// matrix has a row for each kernel and device: the verdict, the figure that it hangs on, and what is missing.
func (v View) matrix() string {
	if !v.onDevices() {
		return ""
	}
	var rows []string
	before := ""
	for _, r := range v.State.Runs {
		at, kernel := v.ofRun(r), ""
		if r.Folder != before {
			kernel, before = report.EscapeCode(report.Clip(report.Plain(r.KernelName()), nameRunes)), r.Folder
		} else {
			kernel = " " // that of the row above
		}
		rows = append(rows, row(kernel, v.deviceCell(r), at.sign+" "+report.Escape(v.verdictWords(r, at)), cellOf(v.foundOn(r, at)), cellOf(v.missingOn(r))))
	}
	return table([]string{"kernel", "device", "verdict", "found", "what is missing"}, rows, matrixRoom, "runs")
}

func (v View) deviceCell(r change.Run) string {
	switch {
	case r.Device == "":
		return dash
	case r.Informs:
		return report.EscapeCode(r.Device) + " (informs)"
	}
	return report.EscapeCode(r.Device)
}

func (v View) verdictWords(r change.Run, at checkStatus) string {
	switch {
	case r.Phase == change.Done:
		return word(r)
	case at.conclusion == cancelled:
		return cancelled
	case at.conclusion == actionRequired:
		return "waits"
	}
	return string(r.Phase)
}

// foundOn is the speedup with its interval, or what else a run ended with or does.
func (v View) foundOn(r change.Run, at checkStatus) string {
	if r.Phase == change.Done {
		return v.finding(r)
	}
	return at.title
}

// missingOn is the first step to a pass.
func (v View) missingOn(r change.Run) string {
	verdict := v.Verdicts[r.Job]
	switch {
	case r.Phase == change.Queued && slices.Contains(v.lacking(v.State.Runs), r.Device):
		return "a runner with the label " + r.Device
	case r.Phase != change.Done || outcome(r) == gates.Pass || verdict == nil:
		return ""
	}
	if steps := report.ToPass(verdict); len(steps) > 0 {
		return steps[0]
	}
	return ""
}

func cellOf(text string) string {
	return report.EscapeProse(report.Clip(report.Plain(text), cellRunes))
}

// lacking is the devices that some runs wait for and no connected runner has. Where it is not known who is connected, there are none.
func (v View) lacking(runs []change.Run) []string {
	var devices []string
	if v.Workflow || !v.State.Facts.Open || v.State.Held() {
		return nil
	}
	for _, r := range runs {
		fit, _ := v.fitting(r.Labels)
		if r.Device != "" && r.Phase == change.Queued && fit == 0 && !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	return devices
}

// howToAdd says which runners are missing, and how to add one.
func (v View) howToAdd() string {
	var items []string
	for _, device := range v.lacking(v.State.Runs) {
		waits := "The check waits for it."
		if slices.ContainsFunc(v.State.Runs, func(r change.Run) bool { return r.Device == device && r.Informs }) {
			waits = "This device only informs, so the check does not wait for it."
		}
		items = append(items, fmt.Sprintf("- %s No runner with the label %s is connected. %s To add one, the operator of the bot lists it under `runners` in the configuration and starts %s on that machine.",
			signWaits, report.EscapeCode(device), waits, report.EscapeCode("kernelgate runner --labels "+device)))
	}
	if items == nil {
		return ""
	}
	return strings.Join(items, "\n") + fmt.Sprintf("\n\nA run that no runner takes within %d days ends without a verdict; `/rebench` starts it again.\n", int(RunExpiry/(24*time.Hour)))
}

// partial tells whether some devices have their verdict while no runner is there for another one. It may take days, so the comment
// says it without waiting for the last verdict.
func (v View) partial() bool {
	return len(v.lacking(v.State.Runs)) > 0 && slices.ContainsFunc(v.State.Runs, func(r change.Run) bool { return r.Phase == change.Done })
}
