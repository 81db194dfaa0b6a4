package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// TerminalTimings is where the time of a check went, for a terminal: step by step, and by kinds of work. The total is what the
// caller waited.
func TerminalTimings(e *gates.Evidence, total float64, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	w.block(timings(e, total))
	if note := idle(e, total); note != "" {
		w.block(paragraph{cell(note)})
	}
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

func timings(e *gates.Evidence, total float64) table {
	columns := []column{{title: "step"}, {title: "seconds", right: true}}
	for _, work := range gates.Works() {
		columns = append(columns, column{title: string(work), right: true, optional: true})
	}
	columns = append(columns, column{title: "start and wait", right: true, optional: true})
	var rows [][]line
	rest := total
	for _, gate := range append(gates.Names(), gates.StepExplain) {
		seconds, ok := e.Took[gate]
		if !ok {
			continue
		}
		rest -= seconds
		name, spent := string(gate), spentOn(e, gate)
		if n := measuredRounds(e); gate == gates.GatePerformance && n > 0 {
			name = fmt.Sprintf("%s, %d rounds", gate, n)
		}
		rows = append(rows, timingRow(name, seconds, spent))
	}
	rows = append(rows, timingRow("everything else", rest, nil), timingRow("total", total, nil))
	return newTable(columns, rows)
}

func timingRow(name string, seconds float64, spent gates.Spent) []line {
	row := []line{cell(name), cell(fmt.Sprintf("%.2f", max(seconds, 0)))}
	for _, work := range gates.Works() {
		text := ""
		if spent != nil {
			text = fmt.Sprintf("%.2f", spent[work])
		}
		row = append(row, cell(text))
	}
	text := ""
	if spent != nil {
		text = fmt.Sprintf("%.2f", max(seconds-spent.Total(), 0))
	}
	return append(row, cell(text))
}

func measuredRounds(e *gates.Evidence) int {
	if e.Performance == nil {
		return 0
	}
	return len(e.Performance.Rounds)
}

// spentOn is what the work of a step took; nil if nobody counted.
func spentOn(e *gates.Evidence, gate gates.Gate) gates.Spent {
	switch {
	case gate == gates.GateCorrectness && e.Correctness != nil:
		return e.Correctness.Spent
	case gate == gates.GatePerformance && measuredRounds(e) > 0:
		var all gates.Spent
		for _, r := range e.Performance.Rounds {
			for work, seconds := range r.Spent {
				if all == nil {
					all = gates.Spent{}
				}
				all[work] += seconds
			}
		}
		return all
	}
	return nil
}

// idle is the share of the time in which nobody gave the GPU anything to do; "" where it is not known.
func idle(e *gates.Evidence, total float64) string {
	busy := 0.0
	for _, gate := range gates.Names() {
		spent := spentOn(e, gate)
		busy += spent[gates.WorkInputs] + spent[gates.WorkLaunches] + spent[gates.WorkComparisons]
	}
	if e.Device.Kind != gates.DeviceGPU || busy == 0 || total <= 0 {
		return ""
	}
	return fmt.Sprintf("The GPU drew inputs, ran the kernels or compared outputs in %.0f %% of this time.", 100*min(busy/total, 1))
}
