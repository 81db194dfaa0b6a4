package report

import (
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/number"
)

// reasons is why the times differ: a sentence for each explained shape, and the counters behind it.
func reasons(v *gates.Verdict) []block {
	var blocks []block
	for _, w := range v.Why {
		head := line{bold("Why")}
		if len(v.Why) > 1 {
			head = append(head, text(" on "), mono(w.Shape))
		}
		blocks = append(blocks, paragraph{append(append(head, text(": ")), prose(capital(w.Sentence)+".")...)})
		if t := reasonTable(w); len(t.rows) > 0 {
			blocks = append(blocks, t)
		}
		if w.Note != "" {
			blocks = append(blocks, paragraph{prose("Counters would say more: " + Clip(Plain(w.Note), remedyRunes))})
		}
	}
	return blocks
}

func reasonTable(w gates.Why) table {
	var rows [][]line
	for _, r := range w.Rows {
		note := ""
		switch {
		case r.Baseline == nil || r.Candidate == nil:
			note = "not counted"
		case !r.Moved:
			note = "did not move"
		}
		if r.Claimed {
			note = joinNotes("named by the change", note)
		}
		rows = append(rows, []line{cell(r.Name), cell(facts.Figure(r.Baseline, r.Unit)), cell(facts.Figure(r.Candidate, r.Unit)), cell(note)})
	}
	return newTable([]column{{title: "counter", wrap: true}, {title: "baseline", right: true}, {title: "candidate", right: true}, {title: "", optional: true}}, rows)
}

func joinNotes(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}

// waits is what warps wait for on both sides, for the explained shapes.
func waits(v *gates.Verdict) []block {
	var blocks []block
	for _, w := range v.Why {
		var rows [][]line
		for _, s := range w.Stalls {
			rows = append(rows, []line{cell(s.Words), cell(number.Share(s.Baseline / 100)), cell(number.Share(s.Candidate / 100))})
		}
		if w.Lift != "" {
			blocks = append(blocks, paragraph{line{text("Occupancy of the candidate on "), mono(w.Shape), text(": " + Clip(w.Lift, gistRunes) + ".")}})
		}
		if len(rows) > 0 {
			blocks = append(blocks, heading{4, line{text("what warps wait for on "), mono(w.Shape)}},
				newTable([]column{{title: "a warp waits for"}, {title: "baseline", right: true}, {title: "candidate", right: true}}, rows))
		}
	}
	return blocks
}

// TerminalWhy is an explanation for a terminal, with what warps wait for.
func TerminalWhy(v *gates.Verdict, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	blocks := append(reasons(v), waits(v)...)
	if len(blocks) == 0 {
		blocks = []block{paragraph{cell("Nothing is explained: the evidence has no profile of both sides. A check profiles them where their times differ.")}}
	}
	for _, b := range blocks {
		w.block(b)
	}
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}
