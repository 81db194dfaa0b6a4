package runners

import (
	"strings"
	"testing"
)

var events = []Event{
	{Gate: "build", Text: "compiling the baseline"},
	{Gate: "correctness", Text: "small, seed 0, normal inputs", Done: 0, Total: 12, Unit: "cases"},
	{Gate: "correctness", Text: "small, seed 1, normal inputs", Done: 1, Total: 12, Unit: "cases"},
	{Gate: "performance", Text: "measuring", Done: 0, Total: 6, Unit: "rounds"},
	{Gate: "performance", Text: "measuring mission", Done: 0, Total: 6, Unit: "rounds"},
	{Gate: "performance", Text: "measuring", Done: 3, Total: 6, Unit: "rounds", Detail: "mission +16.1 % [+14.0 %, +18.0 %] so far", Left: 4.2},
}

func TestPlain(t *testing.T) {
	var b strings.Builder
	p := &Plain{Out: &b}
	for _, e := range events {
		p.Report(e)
	}
	want := `build: compiling the baseline
correctness: comparing 12 cases with the reference
performance: measuring, round 1 of 6
performance: measuring, round 4 of 6, mission +16.1 % [+14.0 %, +18.0 %] so far, about 4s left
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
