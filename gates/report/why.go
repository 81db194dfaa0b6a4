package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/why"
)

// reasons is why the times differ: a sentence for each explained shape, and the counters behind it.
func reasons(v *gates.Verdict) []block { return reasonsOf(v.Reasons(), len(v.Why) > 1) }

func reasonsOf(all []gates.Why, named bool) []block {
	var blocks []block
	for _, w := range all {
		head := line{bold("Why")}
		if named {
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
		blocks = append(blocks, stalled(w)...)
	}
	return blocks
}

// stalled is the lines and the instructions at which the warps of each side were found.
func stalled(w gates.Why) []block {
	var blocks []block
	if w.Unsampled != "" {
		blocks = append(blocks, paragraph{line{text("Lines and instructions on "), mono(w.Shape), text(" were not sampled: " + Clip(Plain(w.Unsampled), remedyRunes))}})
	}
	for _, s := range w.Stalled {
		share := func(samples int) line { return cell(number.Share(float64(samples) / float64(max(1, s.Samples)))) }
		var rows [][]line
		for _, l := range s.Lines {
			rows = append(rows, []line{cell(fmt.Sprintf("%s:%d", l.File, l.Line)), share(l.Samples), cell(why.StallWords(l.Reason))})
		}
		for _, i := range s.Instructions {
			rows = append(rows, []line{{mono(Clip(Plain(i.Text), diffRunesShown/2))}, share(i.Samples), cell(why.StallWords(i.Reason))})
		}
		if len(rows) == 0 {
			continue
		}
		blocks = append(blocks, heading{4, line{text("where the warps of the " + s.Side + " are found, in "), mono(s.Kernel), text(" on "), mono(w.Shape)}},
			newTable([]column{{title: "line or instruction", wrap: true}, {title: "samples", right: true}, {title: "most wait for"}}, rows))
	}
	return blocks
}

// MarkdownWhy is explanations as Markdown: a sentence for each shape, and the counters behind it.
func MarkdownWhy(all []gates.Why) string {
	return markdown(reasonsOf(all, true))
}

// TerminalWhy is an explanation for a terminal, with what warps wait for.
func TerminalWhy(v *gates.Verdict, opt TerminalOptions) string {
	w := terminalWriter{TerminalOptions: opt}
	blocks := append(reasonsOf(v.Why, len(v.Why) > 1), waits(v)...)
	if len(blocks) > 0 {
		blocks = append(blocks, machineCode(v)...)
	}
	if len(blocks) == 0 {
		blocks = []block{paragraph{cell("Nothing is explained: the evidence has no profile of both sides. A check profiles them where their times differ.")}}
	}
	for _, b := range blocks {
		w.block(b)
	}
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}
