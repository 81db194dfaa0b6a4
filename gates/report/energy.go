package report

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// energy is the energy of a launch on each shape, by each sensor.
func energy(v *gates.Verdict, g gates.GateResult) []block {
	if len(v.Energy) == 0 {
		return nil
	}
	var rows [][]line
	for _, r := range v.Energy {
		if !g.Required && r.Status != gates.Passed {
			r.Status = gates.Informs
		}
		status := result(r.Status)
		if r.Limit == "" {
			status = cell("for information")
		}
		rows = append(rows, []line{codeCell(r.Shape), cell(r.Source), cell(number.Joules(r.Baseline)), cell(number.Joules(r.Candidate)), cell(EnergyChange(r)), cell(number.Condition(r.Limit)), status})
	}
	return []block{newTable([]column{
		{title: "shape"},
		{title: "sensor", wrap: true},
		{title: "baseline", right: true},
		{title: "candidate", right: true},
		{title: "energy of a launch", right: true},
		{title: "limit", optional: true},
		{title: "result"},
	}, rows)}
}

// EnergyChange is the change of a row with its interval.
func EnergyChange(r gates.EnergyRow) string {
	text := number.Percent(r.Change)
	if r.Lower != nil && r.Upper != nil {
		text += fmt.Sprintf(" [%s, %s]", number.Percent(*r.Lower), number.Percent(*r.Upper))
	}
	return text
}
