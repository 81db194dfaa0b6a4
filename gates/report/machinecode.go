package report

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// machineCode is what the code of both sides is made of, where it differs: the instructions by what they do, and the diff of the
// disassembly, folded.
func machineCode(v *gates.Verdict) []block {
	m := v.MachineCode
	if m == nil {
		return nil
	}
	head := func(said string) line { return line{text("machine code: " + said)} }
	if len(m.Changes) == 0 {
		if m.Skipped == "" {
			return nil
		}
		return []block{heading{4, append(head("it differs, and is not shown: "), prose(Clip(m.Skipped, gistRunes))...)}}
	}
	var inner []block
	for _, c := range m.Changes {
		inner = append(inner, codeChange(c, len(m.Changes) > 1 || len(c.Shapes) > 0)...)
	}
	if m.More > 0 {
		inner = append(inner, paragraph{cell(fmt.Sprintf("Not compared: %s more.", number.Plural(m.More, "kernel")))})
	}
	if m.Tool != "" {
		inner = append(inner, paragraph{cell("Disassembled by " + m.Tool + ", without addresses.")})
	}
	return append([]block{heading{4, head(codeGist(m))}}, inner...)
}

// codeGist is the first kernel's instructions in one line: all of them, and the kinds whose number changed.
func codeGist(m *gates.MachineCode) string {
	c := m.Changes[0]
	said := ""
	switch {
	case c.Baseline == nil && c.Candidate == nil:
		said = "nothing is known about " + c.Kernel
	case c.Baseline == nil:
		said = fmt.Sprintf("%s is new, with %s", c.Kernel, number.Plural(c.Candidate.All(), "instruction"))
	case c.Candidate == nil:
		said = fmt.Sprintf("%s is gone, with its %s", c.Kernel, number.Plural(c.Baseline.All(), "instruction"))
	case c.Diff == "":
		said = "the instructions are the same; their data or resources are not"
	default:
		said = fmt.Sprintf("%d → %s", c.Baseline.All(), number.Plural(c.Candidate.All(), "instruction"))
		for _, k := range codeKinds {
			if before, after := k.of(c.Baseline), k.of(c.Candidate); before != after && k.name != "other" {
				said += fmt.Sprintf(", %s %d → %d", k.name, before, after)
			}
		}
	}
	if more := len(m.Changes) - 1 + m.More; more > 0 {
		said += fmt.Sprintf(" (and %d more)", more)
	}
	return Clip(said, gistRunes)
}

// codeKinds is the classes of instructions.
var codeKinds = []struct {
	name string
	of   func(*gates.Instructions) int
}{
	{"tensor", func(i *gates.Instructions) int { return i.Tensor }},
	{"memory", func(i *gates.Instructions) int { return i.Memory }},
	{"barrier", func(i *gates.Instructions) int { return i.Barrier }},
	{"special function", func(i *gates.Instructions) int { return i.Special }},
	{"other", func(i *gates.Instructions) int { return i.Other }},
}

// codeChange is one kernel.
func codeChange(c gates.CodeChange, named bool) []block {
	var blocks []block
	if named {
		said := line{mono(c.Kernel)}
		if len(c.Shapes) > 0 {
			said = append(said, text(" on "), mono(strings.Join(c.Shapes, ", ")))
		}
		blocks = append(blocks, paragraph{said})
	}
	figure := func(i *gates.Instructions, of func(*gates.Instructions) int) *float64 {
		if i == nil {
			return nil
		}
		return new(float64(of(i)))
	}
	var rows [][]line
	add := func(name string, of func(*gates.Instructions) int) {
		before, after := figure(c.Baseline, of), figure(c.Candidate, of)
		rows = append(rows, []line{cell(name), cell(amountOf(before, "")), cell(amountOf(after, "")), cell(change(before, after, ""))})
	}
	for _, k := range codeKinds {
		add(k.name, k.of)
	}
	add("all", (*gates.Instructions).All)
	vectors := func(i *gates.Instructions) int { return i.Vector }
	if c.Baseline != nil && c.Baseline.Vector > 0 || c.Candidate != nil && c.Candidate.Vector > 0 {
		add("… with vectors", vectors)
	}
	blocks = append(blocks, newTable([]column{{title: "instructions"}, {title: "baseline", right: true}, {title: "candidate", right: true}, {title: "change", right: true, spare: 1}}, rows))
	if c.Diff == "" {
		return blocks
	}
	shown, cut := shortDiff(c.Diff)
	if cut += c.Cut; cut > 0 {
		shown += fmt.Sprintf("\n… and %s more", number.Plural(cut, "line"))
	}
	said := "Disassembly: what differs"
	if c.Hottest != nil {
		if blocks = append(blocks, paragraph{cell(HottestLoop(c.Hottest))}); !c.Hottest.Same {
			said += ", from the hottest loop on"
		}
	}
	return append(blocks, details{summary: cell(said), blocks: []block{listing{shown}}})
}

// HottestLoop says which loop the diff of the disassembly begins with.
func HottestLoop(h *gates.HottestLoop) string {
	by := "by the kind and the nesting of its instructions, for no profiler has sampled them"
	if was, is := h.Baseline.Sampled, h.Candidate.Sampled; was > 0 && is > 0 {
		by = fmt.Sprintf("with %s → %s of a profiler's samples", number.Share(was), number.Share(is))
	}
	of := fmt.Sprintf("%d → %s", h.Baseline.Instructions(), number.Plural(h.Candidate.Instructions(), "instruction"))
	if h.Same {
		of = number.Plural(h.Candidate.Instructions(), "instruction") + ", the same on both sides"
	}
	if place := loopPlace(h.Candidate); place != "" {
		of += " at " + place
	}
	return fmt.Sprintf("The hottest loop, %s: %s.", by, of)
}

// loopPlace is the lines of the source that a loop comes from, such as k.cu:41–57.
func loopPlace(l gates.CodeLoop) string {
	switch {
	case l.File == "":
		return ""
	case l.LastLine > l.Line:
		return fmt.Sprintf("%s:%d–%d", l.File, l.Line, l.LastLine)
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// What a report shows of a diff; evidence may have more.
const (
	diffLinesShown = 120
	diffRunesShown = 140
)

func shortDiff(diff string) (shown string, cut int) {
	lines := strings.Split(cleanLines(diff), "\n")
	if cut = len(lines) - diffLinesShown; cut > 0 {
		lines = lines[:diffLinesShown]
	}
	for i, l := range lines {
		if r := []rune(l); len(r) > diffRunesShown {
			lines[i] = string(r[:diffRunesShown-1]) + "…"
		}
	}
	return strings.Join(lines, "\n"), max(cut, 0)
}
