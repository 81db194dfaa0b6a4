package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// title is the verdict's word with its reason, such as "DEFER: too-slow".
func title(v *gates.Verdict) string {
	word := strings.TrimSpace(clean(string(v.Outcome)))
	if word == "" {
		word = "NO VERDICT"
	}
	if reason := strings.TrimSpace(clean(string(v.Reason))); reason != "" && v.Outcome != gates.Pass {
		word += ": " + reason
	}
	return word
}

func opening(v *gates.Verdict) []block {
	head := line{mark(signOfOutcome(v.Outcome)), text(" " + title(v))}
	if v.Kernel != "" {
		head = append(head, text(" — "), mono(v.Kernel))
	}
	blocks := []block{heading{2, head}}
	// A summary that a headline repeats would be read twice in four lines.
	repeated := slices.ContainsFunc(v.Headlines, func(h gates.Headline) bool { return h.Text == v.Summary })
	if v.Summary != "" && !repeated {
		blocks = append(blocks, paragraph{prose(v.Summary)})
	}
	return blocks
}

func headlines(v *gates.Verdict) []block {
	var blocks []block
	if len(v.Headlines) > 0 {
		var s stanza
		for _, h := range v.Headlines {
			s.lines = append(s.lines, append(line{mark(signOf(h.Status)), text(" "), bold(h.Name), text(" — ")}, prose(h.Text)...))
		}
		blocks = append(blocks, s)
	}
	if v.Imported != "" {
		blocks = append(blocks, paragraph{imported(v)})
	}
	return blocks
}

// imported warns that nobody measured for this verdict. It stands at the top:
// it is a limit of the verdict, not a detail of a table.
func imported(v *gates.Verdict) line {
	for _, c := range v.Comparisons {
		if measured(c) && c.Speedup.Lower == nil && c.Speedup.Upper == nil {
			return line{mark(signInform), text(" "), bold("Imported"), text(" from summaries in " + v.Imported + ": no interval, point estimates only.")}
		}
	}
	return line{mark(signInform), text(" "), bold("Imported"), text(" from " + v.Imported + ": the figures are copied, not measured in this run.")}
}

func toPass(v *gates.Verdict) []block {
	if v.Outcome == gates.Pass || len(v.ToPass) == 0 {
		return nil
	}
	name := "What would make it pass"
	if v.Outcome == gates.Error {
		name = "What to do"
	}
	return []block{subheading(name), bullets{proseLines(v.ToPass)}}
}

func gateTable(v *gates.Verdict) []block {
	if len(v.Gates) == 0 {
		return nil
	}
	var rows [][]line
	for _, g := range v.Gates {
		asked := "required"
		if !g.Required {
			asked = "informs"
		}
		outcome := result(g.Status)
		if g.Reason != "" && string(g.Reason) != string(g.Gate) && (g.Status == gates.Failed || g.Status == gates.Open) {
			outcome = resultWord(g.Status, string(g.Reason))
		}
		rows = append(rows, []line{cell(orDash(g.Gate)), cell(asked), outcome, prose(orDash(g.Text))})
	}
	blocks := []block{subheading("Gates")}
	if by := judgedBy(v); by != nil {
		blocks = append(blocks, paragraph{by})
	}
	return append(blocks, newTable([]column{
		{title: "gate"},
		{title: "asked", spare: 1},
		{title: "result"},
		{title: "what was found", wrap: true},
	}, rows))
}

// judgedBy names the rule and the device, since a verdict belongs to both.
func judgedBy(v *gates.Verdict) line {
	var l line
	if v.Rule != "" {
		l = append(l, text("Rule "), mono(v.Rule))
		if v.Policy != "" {
			l = append(l, text(" of "), mono(v.Policy))
		}
	}
	if v.Device.Name != "" {
		if l == nil {
			l = append(l, text("Judged"))
		}
		l = append(l, text(" on "), bold(v.Device.Name))
		if v.Device.Arch != "" {
			l = append(l, text(" ("+v.Device.Arch+")"))
		}
	}
	if l == nil {
		return nil
	}
	return append(l, text("."))
}

func gateDetails(v *gates.Verdict) []block {
	var inner []block
	listed := compiler(v) != nil // there the build's details are already
	for _, g := range v.Gates {
		if len(g.Details) > 0 && !(listed && g.Gate == gates.GateBuild) {
			inner = append(inner, paragraph{line{mark(signOf(g.Status)), text(" "), bold(orDash(g.Gate))}}, bullets{proseLines(g.Details)})
		}
	}
	if inner == nil {
		return nil
	}
	return []block{details{"Gate details", inner}}
}

func notes(v *gates.Verdict) []block {
	if len(v.Notes) == 0 {
		return nil
	}
	return []block{subheading("Notes"), bullets{proseLines(v.Notes)}}
}

func subheading(s string) heading { return heading{3, cell(s)} }

func proseLines(texts []string) []line {
	var out []line
	for _, t := range texts {
		out = append(out, prose(orDash(t)))
	}
	return out
}
