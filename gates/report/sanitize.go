package report

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
)

const findingsShown = 20

// sanitizers shows the tools and their findings: a row for each finding, and one for each tool
// without a finding.
func sanitizers(v *gates.Verdict) []block {
	if len(v.Sanitizers) == 0 {
		return nil
	}
	var rows [][]line
	shown, left := 0, 0
	for _, s := range v.Sanitizers {
		tool := line{mono(orDash(s.Tool))}
		if len(s.Findings) == 0 || s.Note != "" {
			rows = append(rows, []line{tool, result(s.Status), prose(orDash(s.Note)), cell(dash), cell(dash), cell(orDash(s.With))})
		}
		for _, f := range s.Findings {
			if shown++; shown > findingsShown {
				left++
				continue
			}
			rows = append(rows, []line{tool, resultOf(s, f), prose(orDash(Clip(f.Text, diagnosticRunes))), placeOf(f), countOf(f), cell(orDash(s.With))})
		}
	}
	blocks := []block{newTable([]column{
		{title: "tool"},
		{title: "result"},
		{title: "found", wrap: true},
		{title: "where", optional: true},
		{title: "how often", right: true, optional: true},
		{title: "with", spare: 1, wrap: true, optional: true},
	}, rows)}
	if left > 0 {
		blocks = append(blocks, paragraph{cell(fmt.Sprintf("%d more findings are in evidence.json.", left))})
	}
	return blocks
}

// resultOf distinguishes findings of the change from those that the baseline has as well.
func resultOf(s gates.SanitizerRow, f gates.Finding) line {
	if f.Before {
		return line{mark(signInform), text(string(nbsp) + "as before")}
	}
	return result(s.Status)
}

// placeOf is a finding's line, and a race's second one.
func placeOf(f gates.Finding) line {
	at := func(file string, n int) inline {
		if n > 0 {
			return mono(fmt.Sprintf("%s:%d", file, n))
		}
		return mono(file)
	}
	switch {
	case f.File == "" && f.Kernel == "":
		return cell(dash)
	case f.File == "":
		return line{mono(f.Kernel)}
	case f.OtherFile == "" || f.OtherFile == f.File && f.OtherLine == f.Line:
		return line{at(f.File, f.Line)}
	}
	return line{at(f.File, f.Line), text(" "), at(f.OtherFile, f.OtherLine)}
}

func countOf(f gates.Finding) line {
	if f.Count <= 1 {
		return cell(dash)
	}
	return cell(fmt.Sprint(f.Count))
}
