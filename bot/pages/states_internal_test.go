package pages

import (
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// What an H200 showed around rounds, and after blocks, is below the samples of a shape.
func TestStates(t *testing.T) {
	data, err := os.ReadFile("../../kernels/sdpa_fp8/evidence/stage6_fp8.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence("stage6_fp8.json", data)
	if err != nil {
		t.Fatal(err)
	}
	shape := e.Shapes[0]
	around := string(statesOf(e.Performance.Rounds, shape, []int{0, 120}))
	for _, want := range []string{"SM clock, MHz", "power draw, W", "temperature, °C", ">1980<"} {
		if !strings.Contains(around, want) {
			t.Errorf("no %s in %.400s", want, around)
		}
	}
	rounds := e.Performance.Rounds[:1]
	for i := range rounds[0].Series {
		if s := &rounds[0].Series[i]; s.Shape == shape.Name {
			s.States = &gates.States{}
			for k := range blockEnds(s.Order) {
				s.States.ClockMHz = append(s.States.ClockMHz, 1400+float64(k))
			}
		}
	}
	if after := string(statesOf(rounds, shape, []int{0})); !strings.Contains(after, ">1400<") || strings.Contains(after, ">1980<") || !strings.Contains(after, "temperature") {
		t.Errorf("after blocks: %.400s", after)
	}
	rounds[0].Before, rounds[0].After = nil, nil
	for i := range rounds[0].Series {
		rounds[0].Series[i].States = nil
	}
	if none := statesOf(rounds, shape, []int{0}); none != "" {
		t.Errorf("nothing was read, and the page shows %.200s", none)
	}
	if got := blockEnds("bcaacb cabbac"); len(got) != 2 || got[0] != 5 || got[1] != 11 {
		t.Errorf("blocks end at %v", got)
	}
}
