package present

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Room in sight: what is left of it is folded.
const (
	tableRoom  = 4000
	kernelRoom = 1000
	stepRoom   = 700
)

// kernelTables is a table for each kernel, with what somebody has to act on first, as far as
// there is room, and a row for each of the others.
func (v View) kernelTables() string {
	runs := v.inOrder()
	if table := v.compilers(); table != "" {
		return joined(v.matrix(), v.howToAdd(), v.kernelRows(runs), table, v.toPass())
	}
	var parts []string
	var rest []change.Run
	room, deferred := tableRoom, false
	for _, r := range runs {
		verdict := v.known(r)
		if r.Phase != change.Done || verdict == nil {
			rest = append(rest, r)
			continue
		}
		text := "#### " + v.done(r).sign + " " + report.EscapeProse(report.Headline(verdict)) + "\n\n" + v.reportOf(r, report.Brief, maxInSight)
		if len(text) > room {
			rest = append(rest, r)
			continue
		}
		room -= len(text)
		parts, deferred = append(parts, text), deferred || outcome(r) == gates.Defer && r.Result.Blocks()
	}
	if v.onDevices() {
		parts, rest = append([]string{v.matrix(), v.howToAdd()}, parts...), nil // the matrix has a row for each of them
	}
	if len(rest) == len(runs) {
		return joined(v.kernelRows(rest), v.toPass())
	}
	if deferred && v.override() == nil {
		parts = append(parts, report.Meaning+"\n")
	}
	return joined(append(parts, v.kernelRows(rest))...)
}

// kernelRows has a row for each kernel.
func (v View) kernelRows(runs []change.Run) string {
	rows := make([]string, len(runs))
	for i, r := range runs {
		at := v.ofRun(r)
		rows[i] = strings.Join([]string{"-", at.sign, kernelCode(r), report.Escape(report.Clip(v.kernelWords(r, at), 160))}, " ")
	}
	if len(rows) == 0 {
		return ""
	}
	return foldOverflow(rows, kernelRoom, "kernels")
}

// compilers is the table over the kernels that another compiler builds, where that is what is under the gate.
func (v View) compilers() string {
	var all []*gates.Verdict
	for _, r := range v.State.Runs {
		if r.Phase == change.Done {
			all = append(all, v.Verdicts[r.Job])
		}
	}
	if len(all) > compilersShown {
		return details(fmt.Sprintf("%d kernels with the other compiler", len(all)), report.Compilers(all))
	}
	return report.Compilers(all)
}

// compilersShown is as many kernels as one looks over at once.
const compilersShown = 30

func (v View) kernelWords(r change.Run, at checkStatus) string {
	switch {
	case r.Phase == change.Done:
		words := word(r)
		if found := v.finding(r); found != "" {
			words += ": " + found
		}
		return words
	case at.conclusion == cancelled:
		return cancelled
	case at.conclusion == actionRequired:
		return "waits"
	}
	return string(r.Phase) + ": " + at.title
}

// inOrder is the runs with what somebody has to act on first.
func (v View) inOrder() []change.Run {
	runs := slices.Clone(v.State.Runs)
	slices.SortStableFunc(runs, func(a, b change.Run) int { return urgency(b) - urgency(a) })
	return runs
}

func urgency(r change.Run) int {
	switch {
	case r.Phase != change.Done:
		return 1
	case outcome(r) == gates.Pass, r.Informs:
		return 0
	}
	return 2
}

// toPass is what stands between the kernels and a pass, where their reports are
// out of sight.
func (v View) toPass() string {
	var items []string
	for _, r := range v.State.Runs {
		verdict := v.Verdicts[r.Job]
		if r.Phase != change.Done || r.Informs || outcome(r) == gates.Pass || verdict == nil {
			continue
		}
		for _, step := range report.ToPass(verdict) {
			items = append(items, "- "+kernelCode(r)+": "+report.EscapeProse(report.Clip(step, 300)))
		}
	}
	if items == nil {
		return ""
	}
	return "**To pass**\n\n" + foldOverflow(items, stepRoom, "steps")
}

// tried is what others tried at the same kernels in vain.
func (v View) tried(runs []change.Run) string {
	var items []string
	for _, r := range runs {
		for _, t := range v.Tried[r.Folder] {
			outcome := string(t.Outcome)
			if t.Reason != "" {
				outcome += " (" + string(t.Reason) + ")"
			}
			line := strings.TrimPrefix(report.Plain(t.Line), outcome+" "+report.Plain(r.Name)+": ")
			items = append(items, fmt.Sprintf("- %s in #%d (%s), %s: %s, %s", kernelCode(r), t.Number,
				report.Escape(report.Clip(report.Plain(t.Title), 100)), day(t.At), report.Escape(outcome), report.Escape(report.Clip(line, 200))))
		}
	}
	if items == nil {
		return ""
	}
	return details(fmt.Sprintf("Tried before in other pull requests (%d)", len(items)), list(items, 8000, "attempts"))
}

// extraTable is what was measured for information.
func (v View) extraTable() string {
	var rows []string
	for _, r := range slices.Backward(v.State.ExtraRuns) {
		found := v.ofRun(r).title
		if r.Phase == change.Done {
			found = v.finding(r)
		}
		rows = append(rows, row(report.EscapeCode(report.Clip(extraOf(r), 120)), kernelCode(r), report.Escape(report.Clip(found, 200)), measuredOn(r)))
	}
	if rows == nil {
		return ""
	}
	return details(fmt.Sprintf("Extra measurements (%d)", len(rows)), "These were requested in addition to what the policy asks. They do not change the verdict.\n\n"+
		table([]string{"asked", "kernel", "found", "measured on"}, rows, 8000, "measurements"))
}

// extraOf is what was asked of a kernel beside the policy.
func extraOf(r change.Run) string {
	if r.ExtraRun == nil {
		return ""
	}
	asked := *r.ExtraRun
	if r.OnlyExplain {
		return report.Plain(grammar.Why{Words: []string{r.ManifestName()}, Shapes: asked.Shapes}.String())
	}
	asked.Kernels, asked.Device = []string{r.ManifestName()}, r.Device
	return report.Plain(asked.String())
}

// past is the history of the change, newest first.
func (v View) past() string {
	text := v.pastTable(func(change.Run) bool { return true })
	if text == "" {
		return ""
	}
	return details(fmt.Sprintf("Earlier attempts (%d)", len(v.State.Past)), text)
}

// attempts is one kernel's part of the history.
func (v View) attempts(run change.Run) string {
	text := v.pastTable(run.Same)
	if text == "" {
		return ""
	}
	return "### Earlier attempts\n\n" + text
}

func (v View) pastTable(which func(change.Run) bool) string {
	var rows []string
	for _, r := range slices.Backward(v.State.Past) {
		if !which(r) {
			continue
		}
		sign, verdict, found := signCancelled, "ended early", dash
		if r.Phase == change.Done {
			sign, verdict, found = v.done(r).sign, word(r), v.finding(r)
		}
		rows = append(rows, row(report.EscapeCode(report.Short(r.Head)), kernelCode(r), fmt.Sprint(r.Count()),
			sign+" "+report.Escape(verdict), report.Escape(report.Clip(found, 200)), minute(r.Ended)))
	}
	return table([]string{"commit", "kernel", "attempt", "verdict", "in one line", "ended"}, rows, 12_000, "attempts")
}

// shownCommands bounds the audit; the journal has them all.
const shownCommands = 10

// audit is who asked for what.
func (v View) audit() string {
	all := v.State.Commands
	var rows []string
	for _, c := range slices.Backward(all[max(0, len(all)-shownCommands):]) {
		became := "waits"
		switch {
		case c.Answered && c.OK:
			became = "done"
		case c.Answered:
			became = "refused"
		}
		rows = append(rows, row(minute(c.When), report.Escape("@"+c.By), report.EscapeCode(report.Clip(report.Plain(c.Request.String()), 120)), became))
	}
	if rows == nil {
		return ""
	}
	return details(fmt.Sprintf("Commands (%d)", v.State.CommandsBefore+len(all)), table([]string{"when", "who", "asked", "became"}, rows, 8000, "commands"))
}

// again says what measuring once more has changed, or that it has changed nothing.
func (v View) again(r change.Run) string {
	if r.Phase != change.Done {
		return ""
	}
	for _, before := range slices.Backward(v.State.Past) {
		if !before.Same(r) || before.Head != r.Head || before.Phase != change.Done || before.Attempt >= r.Attempt {
			continue
		}
		switch {
		case word(before) != word(r):
			return fmt.Sprintf("Measured again: it was %s before.\n", report.Escape(word(before)))
		case v.finding(before) == v.finding(r):
			return "Measured again: **nothing changed**. The earlier rounds already decided this; more rounds cannot change it. A change that builds to different machine code can.\n"
		}
		return fmt.Sprintf("Measured again: **the verdict is the same**. Before, it was %s.\n", report.Escape(v.finding(before)))
	}
	return ""
}

func (v View) howToAsk() string {
	if v.State.ID.Kind != change.Pull || !v.State.Facts.Open {
		return ""
	}
	again := "`/rebench` to measure again, "
	if len(v.State.Runs) == 0 || v.State.Held() {
		again = ""
	}
	return "Comment " + again + "`/explain` to see what is asked, `/help` for all commands.\n"
}

// minute is a time as tables show it.
func minute(t time.Time) string {
	if t.IsZero() {
		return dash
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func day(t time.Time) string {
	if t.IsZero() {
		return dash
	}
	return t.UTC().Format("2006-01-02")
}
