package report

import (
	"github.com/kernelgate/kernelgate/gates"

	"github.com/kernelgate/kernelgate/gates/number"
)

func resources(v *gates.Verdict) []block {
	if len(v.Resources) == 0 {
		return nil
	}
	var rows [][]line
	for _, r := range v.Resources {
		rows = append(rows, []line{cell(orDash(r.Name)), cell(amountOf(r.Baseline, r.Unit)), cell(amountOf(r.Candidate, r.Unit)),
			cell(change(r.Baseline, r.Candidate, r.Unit)), cell(number.Condition(r.Limit)), result(r.Status)})
	}
	return []block{newTable([]column{
		{title: "resource", wrap: true},
		{title: "baseline", right: true},
		{title: "candidate", right: true},
		{title: "change", right: true, spare: 1},
		{title: "limit", optional: true, wrap: true},
		{title: "result"},
	}, rows)}
}

func profile(v *gates.Verdict, g gates.GateResult) []block {
	if len(v.Profile) == 0 {
		return nil
	}
	var rows [][]line
	for _, m := range v.Profile {
		if !g.Required && m.Status == gates.Failed {
			m.Status = gates.Informs
		}
		rows = append(rows, []line{codeCell(m.Shape), cell(amountOf(m.Value, m.Unit)), cell(number.Condition(m.Limit)), result(m.Status), codeCell(m.Metric)})
	}
	return []block{newTable([]column{
		{title: "shape"},
		{title: "value", right: true},
		{title: "limit"},
		{title: "result"},
		{title: "metric", wrap: true}, // its names are long: they may run out of the page
	}, rows)}
}
